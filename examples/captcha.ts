/**
 * A CAPTCHA in front of sign-ups, logins and requests for mailed links: Cloudflare Turnstile, on our own pages. Without an account at
 * Cloudflare, replace `turnstile(…)` by `proofOfWork()`: the browser then computes for a moment.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) TURNSTILE_SITE_KEY=1x00000000000000000000AA \
 *     TURNSTILE_SECRET=1x0000000000000000000000000000000AA npx tsx captcha.ts
 */
import { createAuthRouter, createAuthTables, createKnexStore, type HttpClient, turnstile } from 'doorward'
import express from 'express'
import knex from 'knex'

export async function start(port = 3000, filename = 'app.sqlite', httpClient?: HttpClient) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const { TURNSTILE_SITE_KEY: siteKey = '', TURNSTILE_SECRET: secret = '' } = process.env
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    captcha: turnstile({ siteKey, secret, ...(httpClient && { httpClient }) }),
    captchaWhen: () => true, // logins too
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: `http://localhost:${port}`,
      tokenDelivery: 'cookie',
      pagesEnabled: true,
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
