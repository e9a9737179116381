/**
 * An app without passwords. People log in and sign up with a mailed code. The app has one page and uses no framework in the browser. This
 * example has no mailer, so the response contains the code, and the page shows it. To mail the code, pass `smtpMailer()`.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) npx tsx passwordless.ts
 */
import { createAuthRouter, createAuthTables, createKnexStore, type Mailer } from 'doorward'
import express from 'express'
import knex from 'knex'

const page = (email: string | null) =>
  `<!doctype html><html lang="en"><title>Notes</title><main>${
    email === null
      ? `<form id="ask"><label>Email <input name="email" type="email" autocomplete="username" required></label><button>Mail me a code</button></form>
<form id="confirm" hidden><label>Code <input name="code" inputmode="numeric" autocomplete="one-time-code" required></label><button>Sign in</button></form>`
      : `<p>Signed in as ${email.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)}.</p><form id="leave"><button>Sign out</button></form>`
  }<p id="problem" role="alert"></p></main><script src="/page.js"></script></html>`

const script = `
const send = async (path, form) => {
  const body = JSON.stringify(Object.fromEntries(new FormData(form)))
  const answer = await fetch('/auth' + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  const said = answer.status === 204 ? {} : await answer.json()
  document.querySelector('#problem').textContent = answer.ok ? '' : said.detail
  return answer.ok ? said : null
}
const on = (id, act) => document.querySelector(id)?.addEventListener('submit', async (event) => {
  event.preventDefault()
  await act(event.target)
})
on('#ask', async (form) => {
  const said = await send('/email-login/request', form)
  if (!said) return
  const next = document.querySelector('#confirm')
  next.hidden = false
  if (said.code) next.elements.code.value = said.code // only where there is no mailer
  next.elements.code.focus()
})
on('#confirm', async (form) => { if (await send('/email-login/confirm', form)) location.reload() })
on('#leave', async (form) => { if (await send('/logout', form)) location.reload() })
`

export async function start(port = 3000, filename = 'app.sqlite', mailer?: Mailer) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    ...(mailer && { mailer }),
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: `http://localhost:${port}`,
      cookieSecure: false, // set true when you serve the app over https
      tokenDelivery: 'session',
      passwordLogin: false,
      emailLogin: 'code',
      emailLoginSignup: true, // for an address without an account, a login creates an account
      backendLinks: true, // the links of other mails open built-in pages
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.get('/', async (req, res) => {
    const person = await auth.with(req, res).currentUser()
    res.send(page(person?.email ?? null))
  })
  app.get('/page.js', (_req, res) => {
    res.type('js').send(script)
  })
  app.use('/auth', auth)
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
