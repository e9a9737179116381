import type { Express } from 'express'
import type { Knex } from 'knex'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore } from '../../src'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, browserOf, everyMove, type GivenOptions, type Move, onMove, rowsOf, runSql } from './moved-app'

const guide = readGuide<{
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter<{ delivery: 'session' }>; store: KnexStore }>
  findOldSession: Move['findOldSession']
}>('moving/authjs')

/** packages/adapter-pg/schema.sql of nextauthjs/next-auth, which @auth/pg-adapter 1.11.3 reads and writes. */
const schema = `
create table users (id serial primary key, name varchar(255), email varchar(255) unique, "emailVerified" timestamptz, image text);
create table accounts (id serial primary key, "userId" integer not null references users on delete cascade, type varchar(255) not null, provider varchar(255) not null, "providerAccountId" varchar(255) not null, refresh_token text, access_token text, expires_at bigint, id_token text, scope text, session_state text, token_type text, unique (provider, "providerAccountId"));
create table sessions (id serial primary key, "userId" integer not null references users on delete cascade, expires timestamptz not null, "sessionToken" varchar(255) unique not null);
create table verification_token (identifier text not null, expires timestamptz not null, token text not null, primary key (identifier, token));
`
const token = '6f0d1f4e-2f5a-4c5e-9d43-0a8c6f4c1d11'

for (const database of (await databases()).filter(({ name }) => name === 'postgres'))
  describe('from Auth.js for Express', () => {
    const { knex, options, signInWithGoogle } = onMove(database)
    let app: Express
    let auth: AuthRouter<{ delivery: 'session' }>

    beforeAll(async () => {
      await runSql(knex(), schema)
      const verified = new Date('2026-01-02T03:04:05.678Z')
      await knex()('users').insert([
        { name: 'Ada', email: 'Ada@example.com', emailVerified: verified, image: 'https://example.com/ada.png' },
        { name: 'Without address', email: null },
      ])
      const account = { type: 'oidc', provider: 'google', token_type: 'bearer', scope: 'openid email profile' }
      await knex()('accounts').insert([
        { userId: 1, providerAccountId: 'google-1', ...account },
        { userId: 2, providerAccountId: 'google-2', ...account },
        { userId: 1, providerAccountId: 'ada@example.com', type: 'email', provider: 'nodemailer' },
      ])
      const [later, before] = [new Date(Date.now() + 86_400_000), new Date(Date.now() - 1000)]
      await knex()('sessions').insert([
        { userId: 1, sessionToken: token, expires: later },
        { userId: 1, sessionToken: 'expired', expires: before },
      ])

      const [prepare = '', identities = ''] = guide.sql
      await runSql(knex(), prepare)
      const moved = await guide.code.createAuth(knex(), options())
      auth = moved.auth
      await everyMove.addIdentities(moved.store, await rowsOf(knex(), identities))
      const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession }
      app = appWith(auth, (app) => app.use(everyMove.keepSignedIn(move)))
    })

    test('the Google accounts sign in to the accounts that they were linked to, also one without an address', async () => {
      for (const [sub, id] of Object.entries({ 'google-1': '1', 'google-2': '2' }))
        expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
      expect(await knex()('users').orderBy('id').pluck('email')).toEqual(['ada@example.com', 'user-2@no-address.invalid'])
    })

    test('nobody has a password, so none signs in', async () => {
      for (const { email, hashed_password: password } of await knex()('users'))
        expect((await browserOf(app).send('post', '/auth/login', { email, password })).status).toBe(401)
      await auth.service.unlinkIdentity('2', 'google')
      expect((await auth.service.findUser('1'))?.emailVerifiedAt).toEqual(new Date('2026-01-02T03:04:05.678Z'))
    })

    test('a living session goes on in a session of doorward, once; one that has expired or is made up signs nobody in', async () => {
      const browser = browserOf(app, { '__Secure-authjs.session-token': token })
      expect((await browser.send('get', '/whoami')).status).toBe(307)
      expect((await browser.send('get', '/whoami')).body).toEqual({ id: '1' })
      expect(await knex()('sessions').pluck('sessionToken')).toEqual(['expired'])
      for (const value of [token, 'expired', 'made-up', ''])
        expect((await browserOf(app, { 'authjs.session-token': value }).send('get', '/whoami')).status).toBe(401)
    })
  })
