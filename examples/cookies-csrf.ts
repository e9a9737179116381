/**
 * A web app on one origin. The tokens are in HttpOnly cookies, so no script can read them. A request that changes data needs the CSRF
 * token.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) CSRF_SECRET=$(openssl rand -base64 48) npx tsx cookies-csrf.ts
 */
import { createAuthRouter, createAuthTables, createKnexStore, csrfGuard, csrfToken, getAuth } from 'doorward'
import express from 'express'
import knex from 'knex'

const page = `<!doctype html><title>Notes</title>
<form method="post"><input name="email" type="email"><input name="password" type="password"><button>Log in</button></form>
<button id="add">Add a note</button><output></output>
<script type="module">
  const post = (path, body) => fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-csrf-token': document.cookie.match(/(?:^|; )csrf_token=([^;]*)/)?.[1] ?? '' },
    body: JSON.stringify(body),
  })
  const show = async (response) => { document.querySelector('output').value = response.status }
  document.querySelector('form').onsubmit = async (event) => {
    event.preventDefault()
    await show(await post('/auth/login', Object.fromEntries(new FormData(event.target))))
    await fetch('/api/notes') // a CSRF token of this session
  }
  document.querySelector('#add').onclick = async () => {
    let response = await post('/api/notes', { text: 'Hello' })
    if (response.status === 401 && (await post('/auth/refresh', {})).ok) response = await post('/api/notes', { text: 'Hello' })
    await show(response)
  }
</script>`

export async function start(port = 3000, filename = 'app.sqlite') {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: 'http://localhost:3000', // mailed links begin with this URL
      tokenDelivery: 'cookie',
      cookieSecure: false, // false only for plain http on localhost
    },
  })
  const csrf = { secret: process.env.CSRF_SECRET ?? '' }
  const notes: { by: string; text: string }[] = []

  const api = express.Router()
  api.use(csrfToken({ ...csrf, secure: false }), csrfGuard(csrf), auth.guards.requireAuth(), express.json())
  api.get('/notes', (request, response) => {
    response.json(notes.filter(({ by }) => by === getAuth(request).sub))
  })
  api.post('/notes', (request, response) => {
    notes.push({ by: getAuth(request).sub, text: String(request.body.text) })
    response.status(201).json(notes.at(-1))
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.get('/', (_request, response) => {
    response.type('html').send(page)
  })
  app.use('/auth', auth) // needs no CSRF token, because doorward checks the Origin header itself
  app.use('/api', api)
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
