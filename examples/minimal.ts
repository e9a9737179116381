import { createAuthRouter, createAuthTables, createKnexStore, getAuth, OidcClient } from 'doorward'
import express from 'express'
import knex from 'knex'

async function main() {
  const { OIDC_ISSUER = '', OIDC_CLIENT_ID = '', OIDC_CLIENT_SECRET = '', AUTH_JWT_SECRET = '' } = process.env

  const database = knex({ client: 'better-sqlite3', connection: { filename: 'app.sqlite' }, useNullAsDefault: true })
  await createAuthTables(database)

  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    providers: {
      acme: await OidcClient.discover(OIDC_ISSUER, { clientId: OIDC_CLIENT_ID, clientSecret: OIDC_CLIENT_SECRET, providerName: 'acme' }),
    },
    environment: 'development', // no mailer: links are in the answers; see "Before production"
    settings: {
      jwtSecret: AUTH_JWT_SECRET,
      oauthEnabled: true,
      publicUrl: 'http://localhost:3000',
      tokenDelivery: 'cookie',
      cookieSecure: false, // plain http on localhost only
      oauthSuccessRedirect: '/api/hello',
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  app.get('/api/hello', auth.guards.requireAuth(), (request, response) => {
    response.json({ message: `Hello, ${getAuth(request).email}` })
  })
  app.listen(3000, 'localhost', () => console.log('http://localhost:3000/auth/oauth/acme/login'))
}

main()
