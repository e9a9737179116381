import type { Express } from 'express'
import type { Knex } from 'knex'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore } from '../../src'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, type Browser, browserOf, everyMove, type GivenOptions, type Move, onMove, rowsOf, runSql } from './moved-app'
import { startOldApp } from './old-app'

const guide = readGuide<{
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter<{ delivery: 'session' }>; store: KnexStore }>
  findOldSession: Move['findOldSession']
}>('moving/authjs')

/**
 * The adapter makes no tables. These are the ones that its page tells people to make (https://authjs.dev/getting-started/adapters/pg). Those of
 * packages/adapter-pg/schema.sql in its repository differ by unique rules and foreign keys.
 */
const schema = `
create table verification_token (identifier text not null, expires timestamptz not null, token text not null, primary key (identifier, token));
create table accounts (id serial, "userId" integer not null, type varchar(255) not null, provider varchar(255) not null, "providerAccountId" varchar(255) not null, refresh_token text, access_token text, expires_at bigint, id_token text, scope text, session_state text, token_type text, primary key (id));
create table sessions (id serial, "userId" integer not null, expires timestamptz not null, "sessionToken" varchar(255) not null, primary key (id));
create table users (id serial, name varchar(255), email varchar(255), "emailVerified" timestamptz, image text, primary key (id));
`

for (const database of (await databases()).filter(({ name }) => name === 'postgres'))
  describe('from Auth.js for Express', () => {
    const { knex, config, google, options, signInWithGoogle } = onMove(database)
    let app: Express
    let auth: AuthRouter<{ delivery: 'session' }>
    let living: Browser
    let expired: Browser
    let verifiedAt: Date

    const start = () => {
      const { connection, searchPath } = config()
      return startOldApp('authjs', { connection, searchPath: String(searchPath), google: google().oidcOptions() })
    }
    const signIn = async (browser: Browser, provider: string, body: object = {}) => {
      const { csrfToken } = (await browser.send('get', '/auth/csrf')).body
      return browser.send('post', `/auth/signin/${provider}`, { csrfToken, ...body })
    }
    const byGoogle = async (browser: Browser, profile: object) => {
      const { headers } = await signIn(browser, 'google')
      const { callbackQuery } = google().authorize(String(headers['location']), { profile: { ...profile } })
      expect((await browser.send('get', `/auth/callback/google?${new URLSearchParams(callbackQuery)}`)).status).toBe(302)
      return browser
    }

    /** Ada signs up by a mailed link and links her Google account; the others come by Google alone. All of it over HTTP, in the old app. */
    beforeAll(async () => {
      await runSql(knex(), schema)
      const old = await start()
      try {
        living = browserOf(old.origin)
        await signIn(living, 'email', { email: 'Ada@example.com' })
        const { pathname, search } = new URL((await living.send('get', '/mailed')).body.url)
        await living.send('get', pathname + search)
        await byGoogle(living, { sub: 'google-1', email: 'ada@gmail.com' })
        expired = await byGoogle(browserOf(old.origin), { sub: 'google-1' })
        await byGoogle(browserOf(old.origin), { sub: 'google-2', email: 'Grace@Example.com' })
        await byGoogle(browserOf(old.origin), { sub: 'google-3', email: undefined })
        expect((await living.send('get', '/whoami')).body).toMatchObject({ email: 'ada@example.com' })
        expect((await expired.send('get', '/whoami')).body).toMatchObject({ email: 'ada@example.com' })
      } finally {
        await old.stop()
      }
      verifiedAt = (await knex()('users').where({ id: 1 }).first()).emailVerified
      const ended = knex()('sessions').where({ sessionToken: expired.jar.get('authjs.session-token') })
      expect(await ended.update({ expires: new Date(Date.now() - 1000) })).toBe(1)

      const [prepare = '', identities = ''] = guide.sql
      await runSql(knex(), prepare)
      const moved = await guide.code.createAuth(knex(), options())
      auth = moved.auth
      await everyMove.addIdentities(moved.store, await rowsOf(knex(), identities))
      const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession }
      app = appWith(auth, (app) => app.use(everyMove.keepSignedIn(move)))
    }, 60_000) // another process starts

    test('the Google accounts sign in to the accounts that they were linked to, also one without an address', async () => {
      for (const [sub, id] of Object.entries({ 'google-1': '1', 'google-2': '2', 'google-3': '3' }))
        expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
      const emails = await knex()('users').orderBy('id').pluck('email')
      expect(emails).toEqual(['ada@example.com', 'grace@example.com', 'user-3@no-address.invalid'])
    })

    test('nobody has a password, so none signs in; who signed up by a mailed link has proven the address', async () => {
      for (const { email, hashed_password: password } of await knex()('users'))
        expect((await browserOf(app).send('post', '/auth/login', { email, password })).status).toBe(401)
      const provenAt = async (id: string) => (await auth.service.findUser(id))?.emailVerifiedAt
      expect([verifiedAt, await provenAt('1'), await provenAt('2')]).toEqual([expect.any(Date), verifiedAt, null])
    })

    test('a living session goes on in a session of doorward, once; one that has expired or is made up signs nobody in', async () => {
      const token = living.jar.get('authjs.session-token') ?? ''
      const ofAda = knex()('sessions').where({ sessionToken: token })
      expect(await ofAda.clone()).toHaveLength(1)
      const browser = browserOf(app, { '__Secure-authjs.session-token': token }) // its name on https
      expect((await browser.send('get', '/whoami')).status).toBe(307)
      expect((await browser.send('get', '/whoami')).body).toEqual({ id: '1' })
      expect(await ofAda).toEqual([])
      for (const value of [token, expired.jar.get('authjs.session-token') ?? '', 'made-up', ''])
        expect((await browserOf(app, { 'authjs.session-token': value }).send('get', '/whoami')).status).toBe(401)
    })

    test('the way back: Auth.js signs people in to their accounts again, and somebody new', async () => {
      await runSql(knex(), guide.sql[2] ?? '')
      const old = await start()
      try {
        for (const [sub, email] of Object.entries({ 'google-1': 'ada@example.com', 'google-9': 'new@example.com' })) {
          const browser = await byGoogle(browserOf(old.origin), { sub, email })
          expect((await browser.send('get', '/whoami')).body).toMatchObject({ email })
        }
      } finally {
        await old.stop()
      }
    })
  })
