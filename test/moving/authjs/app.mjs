/** A small app of Auth.js for Express, as its documentation says: Google and mailed links, accounts and sessions in PostgreSQL. */
import { createServer } from 'node:http'
import { ExpressAuth, getSession } from '@auth/express'
import Google from '@auth/express/providers/google'
import PostgresAdapter from '@auth/pg-adapter'
import express from 'express'
import pg from 'pg'

const { connection, searchPath, google } = JSON.parse(process.env.OLD_APP)
const pool = new pg.Pool({ connectionString: connection, options: `-c search_path=${searchPath}` })
const links = []
const config = {
  secret: 'an only secret of the old app 7f3b9a61',
  trustHost: true,
  adapter: PostgresAdapter(pool),
  providers: [
    Google({ clientId: google.clientId, clientSecret: google.clientSecret, issuer: google.issuer }),
    {
      id: 'email',
      name: 'Email',
      type: 'email',
      maxAge: 600,
      from: 'app@example.com',
      sendVerificationRequest: ({ url }) => void links.push(url),
    },
  ],
}
const app = express()
  .set('trust proxy', true)
  .get('/whoami', async (req, res) => void res.json((await getSession(req, config))?.user ?? null))
  .get('/mailed', (_req, res) => void res.json({ url: links.at(-1) }))
  .use('/auth', ExpressAuth(config))
const server = createServer(app).listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}`))
process.once('disconnect', () => process.exit())
