import type { Express } from 'express'
import type { Knex } from 'knex'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore, PasswordReader } from '../../src'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, browserOf, everyMove, expectOldPassword, type GivenOptions, type Move, onMove, rowsOf, runSql } from './moved-app'

const guide = readGuide<{
  prepare(knex: Knex): Promise<void>
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter<{ delivery: 'session' }>; store: KnexStore }>
  findOldSession: Move['findOldSession']
  reader: PasswordReader
}>('moving/better-auth')

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { knex, options, signInWithGoogle } = onMove(sqlite)

/** What `getMigrations(options).compileMigrations()` of better-auth 1.7.25 answers on SQLite, with email and password and a social provider. */
const schema = `
create table "user" ("id" text not null primary key, "name" text not null, "email" text not null unique, "emailVerified" integer not null, "image" text, "createdAt" date not null, "updatedAt" date not null);
create table "session" ("id" text not null primary key, "expiresAt" date not null, "token" text not null unique, "createdAt" date not null, "updatedAt" date not null, "ipAddress" text, "userAgent" text, "userId" text not null references "user" ("id") on delete cascade);
create table "account" ("id" text not null primary key, "accountId" text not null, "providerId" text not null, "userId" text not null references "user" ("id") on delete cascade, "accessToken" text, "refreshToken" text, "idToken" text, "accessTokenExpiresAt" date, "refreshTokenExpiresAt" date, "scope" text, "password" text, "createdAt" date not null, "updatedAt" date not null);
create table "verification" ("id" text not null primary key, "identifier" text not null, "value" text not null, "expiresAt" date not null, "createdAt" date not null, "updatedAt" date not null);
create index "session_userId_idx" on "session" ("userId");
create index "account_userId_idx" on "account" ("userId");
create index "verification_identifier_idx" on "verification" ("identifier");
`
/** Rows and cookie as `signUpEmail` of better-auth 1.7.25 made them; the session's end is moved. */
const ada = { id: 'bMxTHnEZDd7s6PO7is7pt2b65b2elMZM', email: 'ana@example.com', password: 'Ärmel & naïve Straße 9' }
const hash =
  '6e23a200817a34362335f8dcc12e71fb:58de0536ca76a6d732c2b9ef454ae30b352ce2807226ecda7a6f4762f038fb55dda556b23a074d64ebd34cb74f20c662e44d9dae1a96244c69bbed11ab5753e7'
const token = 'lhHD67VFj572jpMmzOBdArQ20TdV9rfm'
const cookies = { 'better-auth.session_token': `${token}.zJ%2BOjVbznWpDMXkPL8Rf%2BDQcI4Bg%2BbJHFWyV1qI2XGw%3D` }
const at = { createdAt: '2026-11-25T18:53:33.441Z', updatedAt: '2026-11-25T18:53:33.441Z' }
const inAWeek = new Date(Date.now() + 604_800_000).toISOString()

async function fill(): Promise<void> {
  const google = { id: 'googleAloneGoogleAloneGoogleAlon', email: 'grace@example.com' }
  await knex()('user').insert([
    { id: ada.id, name: 'Ana', email: ada.email, emailVerified: 0, ...at },
    { id: google.id, name: 'Grace', email: google.email, emailVerified: 1, ...at },
  ])
  await knex()('account').insert([
    { id: 'a1', accountId: ada.id, providerId: 'credential', userId: ada.id, password: hash, ...at },
    { id: 'a2', accountId: 'google-1', providerId: 'google', userId: ada.id, scope: 'email,profile,openid', ...at },
    { id: 'a3', accountId: 'google-2', providerId: 'google', userId: google.id, ...at },
  ])
  const session = { ipAddress: '', userAgent: '', userId: ada.id, ...at }
  await knex()('session').insert([
    { id: 's1', token, expiresAt: inAWeek, ...session },
    { id: 's2', token: 'anExpiredOne', expiresAt: '2026-11-25T18:53:34.000Z', ...session },
  ])
}

describe('from better-auth', () => {
  let app: Express
  let auth: AuthRouter<{ delivery: 'session' }>

  beforeAll(async () => {
    await runSql(knex(), schema)
    await fill()
    await guide.code.prepare(knex())
    const moved = await guide.code.createAuth(knex(), options())
    auth = moved.auth
    await everyMove.addIdentities(moved.store, await rowsOf(knex(), guide.sql[0] ?? ''))
    const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession }
    app = appWith(auth, (app) => app.use(everyMove.keepSignedIn(move)))
  })

  test('the old password signs in, and its hash is replaced; better-auth keeps the old one for a way back', async () => {
    await expectOldPassword(app, ada, async () => (await knex()('user').where({ id: ada.id }).first()).passwordHash)
    expect(await knex()('account').where({ id: 'a1' }).first()).toMatchObject({ password: hash })
  })

  test('the reader reads its own form alone, and is false for the rest without a throw', async () => {
    const { reads, verify } = guide.code.reader
    expect([reads(hash), await verify(hash, ada.password), await verify(hash, `${ada.password} `)]).toEqual([true, true, false])
    expect(await verify(hash, ada.password.normalize('NFD'))).toBe(true)
    for (const other of ['', ':', hash.slice(1), `${hash}0`, `!${hash}`])
      expect([reads(other), await verify(other, ada.password)]).toEqual([false, false])
  })

  test('the Google accounts sign in to the accounts that they were linked to', async () => {
    for (const [sub, id] of Object.entries({ 'google-1': ada.id, 'google-2': 'googleAloneGoogleAloneGoogleAlon' }))
      expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
  })

  test('a living session goes on in a session of doorward, once; one that has expired or is made up signs nobody in', async () => {
    const browser = browserOf(app, cookies)
    expect((await browser.send('get', '/whoami')).status).toBe(307)
    expect((await browser.send('get', '/whoami')).body).toEqual({ id: ada.id })
    for (const value of [cookies['better-auth.session_token'], 'anExpiredOne.x', 'neverMade.x', ''])
      expect((await browserOf(app, { 'better-auth.session_token': value }).send('get', '/whoami')).status).toBe(401)
  })

  test('the proof of an address moves along, and somebody new signs up without a name', async () => {
    const [{ id }] = await auth.service.signUp({ email: 'new@example.com', password: 'eight green bicycles' })
    expect((await auth.service.findUser(ada.id))?.emailVerifiedAt).toBe(null)
    expect((await auth.service.findUser('googleAloneGoogleAloneGoogleAlon'))?.emailVerifiedAt).toEqual(new Date(at.createdAt))
    expect(await knex()('user').where({ id }).first()).toMatchObject({ name: null, emailVerified: 0 })
  })
})
