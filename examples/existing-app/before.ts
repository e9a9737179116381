/**
 * A shop before the move. It has its own users table, bcrypt hashes, sessions by Passport, EJS pages, and an API for another origin.
 * after.ts is the same shop with doorward.
 *
 *   npx tsx examples/existing-app/before.ts
 */
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import cors from 'cors'
import express, { type Express, type RequestHandler } from 'express'
import session from 'express-session'
import knex, { type Knex } from 'knex'
import { Passport } from 'passport'
import { Strategy as LocalStrategy } from 'passport-local'

interface Person {
  id: number
  email: string
  password_hash: string
  first_name: string
  role: string
}

export async function createTables(db: Knex): Promise<void> {
  if (await db.schema.hasTable('users')) return
  await db.schema.createTable('users', (table) => {
    table.increments('id')
    table.string('email', 255).notNullable().unique()
    table.string('password_hash', 60).notNullable()
    table.string('first_name').notNullable()
    table.string('last_name').notNullable()
    table.string('role').notNullable().defaultTo('member')
    table.timestamp('created_at').notNullable().defaultTo(db.fn.now())
  })
  await db.schema.createTable('orders', (table) => {
    table.increments('id')
    table.integer('user_id').unsigned().notNullable().references('users.id')
    table.string('what').notNullable()
  })
}

export function createApp(db: Knex): Express {
  const passport = new Passport()
  passport.use(
    new LocalStrategy({ usernameField: 'email' }, async (email, password, done) => {
      const person = await db<Person>('users').where({ email }).first()
      done(null, person && (await bcrypt.compare(password, person.password_hash)) ? person : false)
    }),
  )
  passport.serializeUser((user, done) => done(null, (user as Person).id)) // the user is a Person, because LocalStrategy found it
  passport.deserializeUser(async (id: number, done) => done(null, await db('users').where({ id }).first()))

  const app = express()
  app.set('views', join(__dirname, 'views')).set('view engine', 'ejs')
  app.use(session({ secret: process.env.SESSION_SECRET ?? 'keyboard cat', resave: false, saveUninitialized: false }))
  app.use(passport.session())
  app.use('/api', cors({ origin: 'http://localhost:5173', credentials: true }))
  app.use(express.urlencoded())

  const loggedIn: RequestHandler = (req, res, next) => (req.user ? next() : res.redirect('/login'))
  const admin: RequestHandler = (req, res, next) => ((req.user as Person).role === 'admin' ? next() : res.sendStatus(403)) // after loggedIn

  app.get('/login', (_req, res) => res.render('login', { problem: null }))
  app.post('/login', passport.authenticate('local', { successRedirect: '/', failureRedirect: '/login' }))
  app.get('/register', (_req, res) => res.render('register', { problem: null }))
  app.post('/register', async (req, res, next) => {
    const { email, password, first_name, last_name } = req.body
    const password_hash = await bcrypt.hash(password, 10)
    await db('users').insert({ email, password_hash, first_name, last_name })
    const person = await db('users').where({ email }).first()
    req.logIn(person, (error) => (error ? next(error) : res.redirect('/')))
  })
  app.post('/logout', (req, res, next) => req.logout((error) => (error ? next(error) : res.redirect('/login'))))
  app.get('/', loggedIn, async (req, res) => {
    const { id, first_name: firstName } = req.user as Person // loggedIn requires a user
    res.render('home', { firstName, orders: await db('orders').where({ user_id: id }) })
  })
  app.get('/admin', loggedIn, admin, async (_req, res) => res.json(await db('users').select('id', 'email', 'role')))
  app.get('/api/orders', loggedIn, async (req, res) => res.json(await db('orders').where({ user_id: (req.user as Person).id }))) // as above
  return app
}

async function main() {
  const db = knex({ client: 'better-sqlite3', connection: { filename: 'shop.sqlite' }, useNullAsDefault: true })
  await createTables(db)
  createApp(db).listen(3000, 'localhost', () => console.log('http://localhost:3000'))
}

if (process.argv[1] === __filename) main()
