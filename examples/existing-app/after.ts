/**
 * The shop of before.ts after the move: the same users table, pages and API, with doorward in place of Passport, bcrypt and express-session.
 *
 *   npx tsx examples/existing-app/move.ts
 *   AUTH_JWT_SECRET=$(openssl rand -base64 48) npx tsx examples/existing-app/after.ts
 */
import { join } from 'node:path'
import cors from 'cors'
import { createAuthRouter, createAuthTables, createKnexStore, findAuth, type HostTables } from 'doorward'
import express, { type Express, type RequestHandler } from 'express'
import Joi from 'joi'
import knex, { type Knex } from 'knex'

/** Our users table, in the words of our columns. */
const tables = {
  users: {
    table: 'users',
    ids: 'integer',
    columns: {
      hashedPassword: 'password_hash',
      isAdmin: { column: 'role', admin: 'admin', others: 'member' },
      name: false,
      totpSecret: false,
      totpEnabledAt: false,
      totpLastStep: false,
      passwordSetAt: false,
    },
    fields: { firstName: 'first_name', lastName: 'last_name' },
  },
} satisfies HostTables

const origin = 'http://localhost:3000'
const api = 'http://localhost:5173'

export async function createApp(db: Knex): Promise<Express> {
  await createAuthTables(db, tables) // makes the other tables, which refer to users.id
  const auth = createAuthRouter<{ fields: { firstName: string; lastName: string } }>({
    store: createKnexStore({ knex: db, ...tables }),
    environment: 'development',
    mailer: { send: async (mail) => console.log(mail.text) },
    signup: { schema: Joi.object({ firstName: Joi.string().max(255).required(), lastName: Joi.string().max(255).required() }) },
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl: origin,
      trustedOrigins: [api],
      tokenDelivery: 'cookie',
      cookieSecure: false, // plain http on localhost only
      backendLinks: true,
      loginUrl: '/login',
      autoActivate: true, // as before: whoever registers is in at once
      passwordMinLength: 8, // as before
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.set('views', join(__dirname, 'views')).set('view engine', 'ejs')
  app.use('/auth', cors({ origin: api, credentials: true }), auth)
  app.use('/api', cors({ origin: api, credentials: true }))

  /** The login page renews the access cookie if it can, and comes back. */
  const toLogin: RequestHandler = (req, res, next) =>
    findAuth(req) ? next() : res.redirect(`/login?next=${encodeURIComponent(req.originalUrl)}`)
  const page = [auth.guards.optionalAuth(), toLogin, auth.guards.requireUser()]

  app.get('/forms.js', (_req, res) => res.sendFile(join(__dirname, 'forms.js')))
  app.get('/login', (_req, res) => res.render('login', { script: true }))
  app.get('/register', (_req, res) => res.render('register', { script: true }))
  app.get('/', ...page, async (req, res) => {
    const { id, fields } = auth.guards.getUser(req)
    res.render('home', { firstName: fields.firstName, orders: await db('orders').where({ user_id: id }), script: true })
  })
  app.get('/admin', ...page, auth.guards.requireAdmin(), async (_req, res) => res.json(await db('users').select('id', 'email', 'role')))
  app.get('/api/orders', auth.guards.requireUser(), async (req, res) => {
    res.json(await db('orders').where({ user_id: auth.guards.getUser(req).id }))
  })
  return app
}

async function main() {
  const db = knex({ client: 'better-sqlite3', connection: { filename: 'shop.sqlite' }, useNullAsDefault: true })
  const app = await createApp(db)
  app.listen(3000, 'localhost', () => console.log(origin))
}

if (process.argv[1] === __filename) main()
