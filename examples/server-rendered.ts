/**
 * A site without a front end: a public page, a private one, and the whole account area as pages of doorward's own.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) AUTH_MFA_SECRET_KEY=$(openssl rand -base64 32) npx tsx server-rendered.ts
 */
import { createAuthRouter, createAuthTables, createKnexStore, getAuth, html, type Mailer } from 'doorward'
import express from 'express'
import knex from 'knex'

/** Mails appear in the terminal; in production give `smtpMailer()` instead. */
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
      publicUrl: 'http://localhost:3000', // where mailed links lead
      tokenDelivery: 'session',
      cookieSecure: false, // plain http on localhost only
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
