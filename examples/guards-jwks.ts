/**
 * An API beside the app that logs people in. The API needs no secret, no database and no route of doorward. It needs only the URL of the
 * public keys. The app publishes these keys if it has the setting `jwtKeys`.
 *
 *   JWKS_URI=https://app.example.com/auth/.well-known/jwks.json npx tsx guards-jwks.ts
 *   curl -H "authorization: Bearer $ACCESS_TOKEN" localhost:4000/reports
 */
import { createGuards, errorHandler, findAuth, getAuth } from 'doorward'
import express from 'express'

export function start(port = 4000, jwksUri = process.env.JWKS_URI ?? '') {
  const guards = createGuards({ settings: { jwksUri } }) // fetches the keys for the first token, and then keeps them

  const app = express()
  app.get('/', guards.optionalAuth(), (request, response) => {
    response.json({ hello: findAuth(request)?.email ?? 'stranger' })
  })
  app.get('/reports', guards.requireAuth(), (request, response) => {
    response.json({ for: getAuth(request).sub })
  })
  app.delete('/reports', guards.requireMfa(), (_request, response) => {
    response.sendStatus(204) // only for a session that used a second factor
  })
  app.use(errorHandler())
  return app.listen(port, '127.0.0.1')
}

if (process.argv[1] === __filename) start()
