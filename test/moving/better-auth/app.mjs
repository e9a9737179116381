/** A small app of better-auth on Express, as its documentation says: passwords and Google, in a SQLite file. */
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'
import Database from 'better-sqlite3'
import express from 'express'

const { filename, google } = JSON.parse(process.env.OLD_APP)
// better-auth knows Google's addresses by heart. Here the provider of the test answers in Google's place.
const network = globalThis.fetch
globalThis.fetch = (url, init) => network(String(url) === 'https://oauth2.googleapis.com/token' ? google.tokenUrl : url, init)

const server = createServer().listen(0, '127.0.0.1', async () => {
  const origin = `http://127.0.0.1:${server.address().port}`
  const options = {
    baseURL: origin,
    secret: 'an only secret of the old app 7f3b9a61',
    database: new Database(filename),
    telemetry: { enabled: false },
    logger: { level: 'error' },
    emailAndPassword: { enabled: true },
    socialProviders: { google: { clientId: google.clientId, clientSecret: google.clientSecret } },
    account: { accountLinking: { allowDifferentEmails: true } },
  }
  await (await getMigrations(options)).runMigrations()
  const auth = betterAuth(options)
  const app = express()
    .get('/whoami', async (req, res) => {
      res.json((await auth.api.getSession({ headers: fromNodeHeaders(req.headers) }))?.user ?? null)
    })
    .all('/api/auth/*splat', toNodeHandler(auth))
  server.on('request', app)
  process.send(origin)
})
process.once('disconnect', () => process.exit())
