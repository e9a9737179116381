/**
 * The back end of a single-page app on another origin. The tokens are in the body of a response, and the app sends the access token in the
 * Authorization header. There is no cookie, so there is no CSRF. The app keeps the access token in memory and refreshes it before it
 * expires.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) SPA_ORIGIN=http://localhost:5173 npx tsx spa-bearer.ts
 *
 * In the app:  POST /auth/login { email, password }       -> { access_token, refresh_token }
 *              GET /api/hello   Authorization: Bearer …   -> 401 if the token has expired:
 *              POST /auth/refresh { refresh_token }       -> a new pair; the old refresh token is no longer valid
 */
import { createAuthRouter, createAuthTables, createKnexStore, getAuth } from 'doorward'
import express, { type RequestHandler } from 'express'
import knex from 'knex'

/** Sets the CORS headers for one origin, without credentials, because doorward sets no CORS headers. */
function allowOrigin(origin: string): RequestHandler {
  return (request, response, next) => {
    response.vary('Origin')
    if (request.headers.origin === origin) {
      response.set('Access-Control-Allow-Origin', origin)
      response.set('Access-Control-Allow-Headers', 'Authorization, Content-Type')
      response.set('Access-Control-Expose-Headers', 'Retry-After')
    }
    if (request.method === 'OPTIONS') response.sendStatus(204)
    else next()
  }
}

export async function start(port = 3000, filename = 'app.sqlite') {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: 'http://localhost:3000', // mailed links begin with this URL
      tokenDelivery: 'bearer',
      accessTokenTtlSeconds: 600,
      refreshReuseGraceSeconds: 10, // for two tabs that refresh at the same time
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use(allowOrigin(process.env.SPA_ORIGIN ?? 'http://localhost:5173'))
  app.use('/auth', auth)
  app.get('/api/hello', auth.guards.requireAuth(), (request, response) => {
    response.json({ message: `Hello, ${getAuth(request).email}` })
  })
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
