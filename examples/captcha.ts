/**
 * A CAPTCHA for sign-ups, logins and requests for mailed links: Cloudflare Turnstile, with `guardRequest`. The page's widget writes its
 * answer into the body field `captcha`. Cloudflare's server says whether the answer is valid. An answer is valid only once.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) TURNSTILE_SECRET=1x0000000000000000000000000000000AA npx tsx captcha.ts
 */
import { type AuthRouterOptions, createAuthRouter, createAuthTables, createHttpClient, createKnexStore, errors } from 'doorward'
import express from 'express'
import knex from 'knex'

const http = createHttpClient({ timeoutMs: 3_000 })

const siteverify = 'https://challenges.cloudflare.com/turnstile/v0/siteverify'

export function turnstile({ secret, url = siteverify }: { secret: string; url?: string | undefined }) {
  const check: AuthRouterOptions['guardRequest'] = async (req) => {
    const answer: unknown = req.body?.captcha
    if (typeof answer !== 'string' || answer.length > 2048) throw new errors.ForbiddenError()
    const body = new URLSearchParams({ secret, response: answer, remoteip: req.ip ?? '' }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    // If Cloudflare does not respond, the request is rejected. To accept requests in that case, catch the error and return.
    const said = await http(url, { method: 'POST', headers, body }).catch((cause) => {
      throw new errors.ServiceUnavailableError({ cause })
    })
    if (JSON.parse(Buffer.from(said.body).toString()).success !== true) throw new errors.ForbiddenError()
  }
  return check
}

export async function start(port = 3000, filename = 'app.sqlite', url?: string) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    guardRequest: turnstile({ secret: process.env.TURNSTILE_SECRET ?? '', url }),
    settings: { jwtSecret: process.env.AUTH_JWT_SECRET ?? '', publicUrl: `http://localhost:${port}` },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
