/**
 * A single-page app with React and Vite, and its API, on one origin. Mails are printed, so that the example needs no mail server.
 *
 *   npm install && npm start
 */
import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { createAuthRouter, createAuthTables, createKnexStore, GoogleClient, getAuth, type Mailer } from 'doorward'
import express from 'express'
import knex from 'knex'
import { createServer, type InlineConfig } from 'vite'

const printed: Mailer = { send: async ({ to, text }) => console.log(`A mail to ${to}:\n${text}`) }

export async function start(port = 3000, filename = 'app.sqlite', mailer: Mailer = printed, config: InlineConfig = {}): Promise<Server> {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const { GOOGLE_ID, GOOGLE_SECRET, AUTH_JWT_SECRET } = process.env
  const hasGoogle = GOOGLE_ID !== undefined && GOOGLE_SECRET !== undefined
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    mailer,
    settings: {
      jwtSecret: AUTH_JWT_SECRET ?? randomBytes(48).toString('base64'), // without the variable, a restart signs everybody out
      publicUrl: `http://localhost:${port}`,
      tokenDelivery: 'cookie',
      refreshReuseGraceSeconds: 10, // a page can lose the answer to a refresh
      cookieSecure: false, // false only for plain http on localhost
      backendLinks: true,
      mfaEnabled: true,
      mfaIssuer: 'Orders',
      passkeysEnabled: true,
      oauthEnabled: hasGoogle,
      ...(hasGoogle && { oauthSuccessRedirect: '/', oauthErrorRedirect: '/' }),
    },
    providers: hasGoogle ? { google: new GoogleClient({ clientId: GOOGLE_ID, clientSecret: GOOGLE_SECRET }) } : {},
  })
  await auth.ready()

  const orders: { by: string; what: string }[] = []
  const api = express.Router().use(auth.guards.requireAuth(), auth.guards.csrf(), express.json())
  api.get('/orders', (request, response) => void response.json(orders.filter(({ by }) => by === getAuth(request).sub)))
  api.post('/orders', (request, response) => {
    orders.push({ by: getAuth(request).sub, what: String(request.body.what) })
    response.status(201).json(orders.at(-1))
  })

  const vite = await createServer({ root: import.meta.dirname, appType: 'spa', server: { middlewareMode: true }, ...config })
  const server = express().use('/auth', auth).use('/api', api).use(vite.middlewares).listen(port)
  return server.on('close', () => void Promise.all([vite.close(), database.destroy()]))
}

if (process.argv[1] === import.meta.filename) {
  await start()
  console.log('http://localhost:3000')
}
