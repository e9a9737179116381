/**
 * A phone app logs a person in with a provider's SDK, and sends the access token of the provider once. The provider must have issued the
 * token to this application. A token for another application is rejected.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) GOOGLE_CLIENT_ID=… GOOGLE_CLIENT_SECRET=… GOOGLE_IOS_CLIENT_ID=… npx tsx mobile-token.ts
 *
 * In the app:  POST /auth/oauth/google/token { access_token }  -> { access_token, refresh_token } of doorward
 */
import { createAuthRouter, createAuthTables, createKnexStore, GoogleClient, getAuth, type ProviderClient } from 'doorward'
import express from 'express'
import knex from 'knex'

function googleFromEnv(): ProviderClient {
  return new GoogleClient({
    clientId: process.env.GOOGLE_CLIENT_ID ?? '',
    clientSecret: process.env.GOOGLE_CLIENT_SECRET ?? '',
    extraAudiences: [process.env.GOOGLE_IOS_CLIENT_ID ?? ''], // the phone apps have their own client ids
  })
}

export async function start(port = 3000, filename = 'app.sqlite', google: ProviderClient = googleFromEnv()) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    providers: { google },
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      oauthEnabled: true,
      publicUrl: 'http://localhost:3000', // for the same login in a browser
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  app.get('/api/hello', auth.guards.requireAuth(), (request, response) => {
    response.json({ message: `Hello, ${getAuth(request).email}` })
  })
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
