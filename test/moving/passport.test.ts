import bcrypt from 'bcrypt'
import express, { type Express } from 'express'
import session from 'express-session'
import type { Knex } from 'knex'
import { Passport } from 'passport'
import { Strategy as LocalStrategy } from 'passport-local'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore } from '../../src'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import {
  appWith,
  type Browser,
  browserOf,
  createUsersTable,
  everyMove,
  expectOldPassword,
  type GivenOptions,
  type Move,
  onMove,
  origin,
  rowsOf,
} from './moved-app'

const guide = readGuide<{
  prepare(knex: Knex): Promise<void>
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter<{ delivery: 'session' }>; store: KnexStore }>
  findOldSession: Move['findOldSession']
}>('moving/passport')

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { knex, google, options, signInWithGoogle } = onMove(sqlite)

const ada = { id: '1', email: 'Ada@Example.com', password: 'correct horse' }
const store = new session.MemoryStore()
const sessions = session({ secret: 'keyboard cat', resave: false, saveUninitialized: false, store })

/** The app before: passport 0.7, passport-local, express-session 1.19, bcrypt. */
function oldApp(): Express {
  const passport = new Passport()
  passport.use(
    new LocalStrategy({ usernameField: 'email' }, async (email, password, done) => {
      const person = await knex()('users').where({ email }).first()
      done(null, person && (await bcrypt.compare(password, person.password_hash)) ? person : false)
    }),
  )
  passport.serializeUser((user, done) => done(null, (user as { id: number }).id)) // what LocalStrategy found
  passport.deserializeUser(async (id: number, done) => done(null, await knex()('users').where({ id }).first()))
  const app = express()
  app.use(sessions, passport.session(), express.json())
  app.post('/login', passport.authenticate('local'), (req, res) => {
    Object.assign(req.session, { cart: ['a loom'] })
    res.sendStatus(204)
  })
  app.get('/whoami', (req, res) => res.json(req.user ?? null))
  return app
}

describe('from Passport with express-session', () => {
  let old: Express
  let app: Express
  let living: Browser
  let closed: Browser
  const others: Browser[] = []
  let auth: AuthRouter<{ delivery: 'session' }>

  beforeAll(async () => {
    await createUsersTable(knex())
    const password_hash = await bcrypt.hash(ada.password, 10)
    await knex()('users').insert([
      { email: ada.email, password_hash, name: 'Ada', google_id: 'google-1' },
      { email: 'grace@example.com', google_id: 'google-2' },
      { email: 'closed@example.com', password_hash },
      { email: 'reset@example.com', password_hash },
      { email: 'everywhere@example.com', password_hash },
      { email: 'device@example.com', password_hash },
      { email: 'path@example.com', password_hash },
    ])
    await knex()('users').update({ created_at: '2025-03-01 12:00:00' }) // an identity as old as its account would be fresh
    old = oldApp()
    living = browserOf(old)
    closed = browserOf(old)
    await living.send('post', '/login', ada)
    await closed.send('post', '/login', { ...ada, email: 'closed@example.com' })
    for (const email of ['reset@example.com', 'everywhere@example.com', 'device@example.com']) {
      const browser = browserOf(old)
      expect((await browser.send('post', '/login', { ...ada, email })).status).toBe(204)
      others.push(browser)
    }
    expect((await living.send('get', '/whoami')).body).toMatchObject({ email: ada.email })

    await guide.code.prepare(knex())
    await knex()('users').where({ email: 'closed@example.com' }).update({ is_active: false })
    const moved = await guide.code.createAuth(knex(), options())
    auth = moved.auth
    await everyMove.addIdentities(moved.store, await rowsOf(knex(), guide.sql[0] ?? ''))
    const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession }
    everyMove.endOldSessionsToo(moved)
    app = appWith(auth, (app) => app.use(sessions, everyMove.keepSignedIn(move)))
    app.get('/cart', (req, res) => res.json(Reflect.get(req.session, 'cart') ?? null))
  })

  test('the old password signs in, and its hash is replaced', () =>
    expectOldPassword(app, ada, async () => (await knex()('users').where({ id: 1 }).first()).password_hash))

  test('the Google accounts sign in to the accounts that they were linked to, also one without a password', async () => {
    for (const [sub, id] of Object.entries({ 'google-1': '1', 'google-2': '2' }))
      expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
    expect(google().requestsTo('token')).toHaveLength(2)
    expect(await knex()('users')).toHaveLength(7)
  })

  test('a living session goes on in a session of doorward, which is not fresh; the old one ends, and keeps what else it holds', async () => {
    const browser = browserOf(app, Object.fromEntries(living.jar))
    const first = await browser.send('post', '/whoami?page=2', { any: 'body' })
    expect([first.status, first.headers['location'], first.headers['cache-control']]).toEqual([307, '/whoami?page=2', 'no-store'])
    expect((first.headers['set-cookie'] as unknown as string[]).find((line) => line.startsWith('auth_session='))).toMatch(
      /; Path=\/; Expires=.*; HttpOnly; Secure; SameSite=Lax$/,
    )
    expect((await browser.send('get', '/whoami')).body).toEqual({ id: '1' })
    expect((await browser.send('get', '/cart')).body).toEqual(['a loom'])
    const change = { new_email: 'new@example.com', current_password: ada.password }
    expect((await browser.send('post', '/auth/email-change/request', change)).body.code).toBe('REAUTHENTICATION_REQUIRED')

    const devices = (await browser.send('get', '/auth/sessions')).body as { provider: string | null }[]
    expect(devices.map(({ provider }) => provider)).toContain('old-session')
    const again = browserOf(app, Object.fromEntries(living.jar))
    expect((await again.send('get', '/whoami')).status).toBe(401)
    expect((await knex()('auth_identities').pluck('provider')).sort()).toEqual(['google', 'google'])
  })

  test('a session of an account that is closed, or of nobody, signs nobody in', async () => {
    const rows = await knex()('auth_sessions')
    for (const cookies of [Object.fromEntries(closed.jar), {}])
      expect((await browserOf(app, cookies).send('get', '/whoami')).status).toBe(401)
    expect(await knex()('auth_sessions')).toHaveLength(rows.length)
  })

  test('a new password, "log out everywhere" and an ended device end the old sessions of that person', async () => {
    const signIn = async (email: string) => {
      const browser = browserOf(app)
      await browser.send('post', '/auth/login', { email, password: ada.password })
      return browser
    }
    await auth.service.changePassword({ userId: '4', currentPassword: ada.password, newPassword: 'eight green bicycles' })
    await (await signIn('everywhere@example.com')).send('post', '/auth/logout', { all_sessions: true })
    const [device, other] = [await signIn('device@example.com'), await signIn('device@example.com')]
    expect((await device.send('post', '/auth/sessions/revoke-others', {})).status).toBe(204)
    expect((await other.send('get', '/whoami')).status).toBe(401)
    for (const { jar } of others)
      expect((await browserOf(app, { 'connect.sid': jar.get('connect.sid') ?? '' }).send('get', '/whoami')).status).toBe(401)
  })

  test('no path leads a person with an old session to another site', async () => {
    for (const path of ['//evil.example/', '/\\evil.example/']) {
      const browser = browserOf(old)
      await browser.send('post', '/login', { ...ada, email: 'path@example.com' })
      const { status, headers } = await browserOf(app, Object.fromEntries(browser.jar)).send('get', path)
      expect([status, new URL(String(headers['location'] ?? '/'), origin).origin]).toEqual([307, origin])
    }
  })
})
