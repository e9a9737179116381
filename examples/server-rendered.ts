/**
 * A site without front-end code: a public page, a private page, and doorward's pages for the account.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) AUTH_MFA_SECRET_KEY=$(openssl rand -base64 32) npx tsx server-rendered.ts
 */
import { createAuthRouter, createAuthTables, createKnexStore, getAuth, html, type Mailer } from 'doorward'
import express from 'express'
import knex from 'knex'

/** Writes mails to the terminal. In production, pass `smtpMailer()` instead. */
const terminal: Mailer = { send: async ({ to, text }) => console.log(`Mail to ${to}\n${text}`) }

export async function start(port = 3000, { filename = 'app.sqlite', mailer = terminal } = {}) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    mailer,
    theme: { name: 'Harbour', homeUrl: '/', accent: '#0b6e4f' },
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: 'http://localhost:3000', // mailed links begin with this URL
      tokenDelivery: 'session',
      cookieSecure: false, // false only for plain http on localhost
      pagesEnabled: true,
      mfaEnabled: true,
      mfaIssuer: 'Harbour',
      mfaSecretKey: process.env.AUTH_MFA_SECRET_KEY ?? '',
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  app.get('/', (_request, response) => {
    response.type('html').send('<!doctype html><title>Harbour</title><h1>Harbour</h1><a href="/boats">Your boats</a>')
  })
  app.get('/boats', auth.guards.requireLogin(), (request, response) => {
    const { email } = getAuth(request)
    response
      .type('html')
      .send(html`<!doctype html><title>Your boats</title><h1>Boats of ${email}</h1><a href="/auth/account">Your account</a>`.markup)
  })
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
