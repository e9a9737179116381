/**
 * An API beside the app that signs people in. It knows no secret, no database and no route of doorward's: only the address of
 * the public keys, which the issuing app publishes once it has `jwtKeys`.
 *
 *   JWKS_URI=https://app.example.com/auth/.well-known/jwks.json npx tsx guards-jwks.ts
 *   curl -H "authorization: Bearer $ACCESS_TOKEN" localhost:4000/reports
 */
import { createGuards, errorHandler, findAuth, getAuth } from 'doorward'
import express from 'express'

export function start(port = 4000, jwksUri = process.env.JWKS_URI ?? '') {
  const guards = createGuards({ settings: { jwksUri } }) // fetched when the first token comes, then kept

  const app = express()
  app.get('/', guards.optionalAuth(), (request, response) => {
    response.json({ hello: findAuth(request)?.email ?? 'stranger' })
  })
  app.get('/reports', guards.requireAuth(), (request, response) => {
    response.json({ for: getAuth(request).sub })
  })
  app.delete('/reports', guards.requireMfa(), (_request, response) => {
    response.sendStatus(204) // only somebody who has shown a second factor
  })
  app.use(errorHandler())
  return app.listen(port, '127.0.0.1')
}

if (process.argv[1] === __filename) start()
