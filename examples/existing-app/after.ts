/**
 * The shop of before.ts after the move: the same users table, pages and API, with doorward in place of Passport, bcrypt and express-session.
 *
 *   npx tsx examples/existing-app/move.ts
 *   AUTH_JWT_SECRET=$(openssl rand -base64 48) npx tsx examples/existing-app/after.ts
 */
import { join } from 'node:path'
import cors from 'cors'
import { createAuthRouter, createAuthTables, createKnexStore, errors, type HostTables } from 'doorward'
import express, { type Express, type Request, type Response } from 'express'
import Joi from 'joi'
import knex, { type Knex } from 'knex'

/** Our users table: the names of our columns for doorward's fields. */
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
      tokenDelivery: 'session', // as before: one cookie, and a logout takes effect immediately
      cookieSecure: false, // false only for plain http on localhost
      backendLinks: true,
      loginUrl: '/login',
      autoActivate: true, // as before: the sign-up logs the person in
      passwordMinLength: 8, // as before
    },
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.set('views', join(__dirname, 'views')).set('view engine', 'ejs')
  app.use('/auth', cors({ origin: api, credentials: true }), auth)
  app.use('/api', cors({ origin: api, credentials: true }))

  app.use(express.urlencoded())

  app.get('/login', (_req, res) => res.render('login', { problem: null }))
  app.post('/login', async (req, res) => {
    const { email, password } = req.body
    await answerForm(res, 'login', cameFrom(req), () => auth.with(req, res).logIn({ email, password }))
  })
  app.get('/register', (_req, res) => res.render('register', { problem: null }))
  app.post('/register', async (req, res) => {
    const { email, password, first_name: firstName, last_name: lastName } = req.body
    await answerForm(res, 'register', '/', () => auth.with(req, res).signUp({ email, password, fields: { firstName, lastName } }))
  })
  app.post('/logout', async (req, res) => {
    await auth.with(req, res).logOut()
    res.redirect('/login')
  })

  const page = auth.guards.requireLogin() // redirects people who are not logged in to /login?return_to=…
  app.get('/', page, auth.guards.requireUser(), async (req, res) => {
    const { id, fields } = auth.guards.getUser(req)
    res.render('home', { firstName: fields.firstName, orders: await db('orders').where({ user_id: id }) })
  })
  app.get('/admin', page, auth.guards.requireAdmin(), async (_req, res) => res.json(await db('users').select('id', 'email', 'role')))
  app.get('/api/orders', auth.guards.requireUser(), async (req, res) => {
    res.json(await db('orders').where({ user_id: auth.guards.getUser(req).id }))
  })
  return app
}

/** Redirects to the next page. After an error, shows the form again with the error. */
async function answerForm(res: Response, form: string, next: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
    res.redirect(next)
  } catch (error) {
    if (!(error instanceof errors.AppError)) throw error
    res.status(error.status).render(form, { problem: (error.explains ?? error.detail)['en-US'] })
  }
}

/**
 * Returns the page that the person wanted before the login. An attacker can write any `return_to`, so a page of another site does not
 * count.
 */
function cameFrom(req: Request): string {
  const asked = String(req.query.return_to ?? '/')
  const url = URL.canParse(asked, origin) ? new URL(asked, origin) : null
  return url?.origin === origin ? url.href : '/'
}

async function main() {
  const db = knex({ client: 'better-sqlite3', connection: { filename: 'shop.sqlite' }, useNullAsDefault: true })
  const app = await createApp(db)
  app.listen(3000, 'localhost', () => console.log(origin))
}

if (process.argv[1] === __filename) main()
