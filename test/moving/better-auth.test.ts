import type { Express } from 'express'
import type { Knex } from 'knex'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore, PasswordReader } from '../../src'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, type Browser, browserOf, everyMove, expectOldPassword, type GivenOptions, type Move, onMove, rowsOf } from './moved-app'
import { startOldApp } from './old-app'

const guide = readGuide<{
  prepare(knex: Knex): Promise<void>
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter<{ delivery: 'session' }>; store: KnexStore }>
  findOldSession: Move['findOldSession']
  reader: PasswordReader
}>('moving/better-auth')

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { knex, config, google, options, signInWithGoogle } = onMove(sqlite, { memory: false })

const ana = { id: '', email: 'ana@example.com', password: 'Ärmel & naïve Straße 9' }
const cookie = 'better-auth.session_token'
const given = () => ({ ...(config().connection as object), google: google().oidcOptions() })

describe('from better-auth', () => {
  let app: Express
  let auth: AuthRouter<{ delivery: 'session' }>
  let living: Browser
  let expired: Browser
  let hash: string
  let grace: { id: string; createdAt: string }

  /** Ana signs up with a password and links her Google account; Grace comes by Google alone. All of it over HTTP, in the old app. */
  beforeAll(async () => {
    const old = await startOldApp('better-auth', given())
    const send = (browser: Browser, path: string, body: object) => browser.send('post', `/api/auth/${path}`, body, { origin: old.origin })
    const byGoogle = async (browser: Browser, path: string, profile: object) => {
      const { body } = await send(browser, path, { provider: 'google', callbackURL: '/' })
      const url = body.url.replace('https://accounts.google.com/o/oauth2/v2/auth', google().authorizeUrl)
      const { callbackQuery } = google().authorize(url, { profile: { ...profile } })
      expect((await browser.send('get', `/api/auth/callback/google?${new URLSearchParams(callbackQuery)}`)).headers['location']).toBe('/')
    }
    try {
      living = browserOf(old.origin)
      expired = browserOf(old.origin)
      ana.id = (await send(living, 'sign-up/email', { ...ana, name: 'Ana' })).body.user.id
      await byGoogle(living, 'link-social', { sub: 'google-1', email: 'ana@gmail.com' })
      expect((await send(expired, 'sign-in/email', ana)).body.user).toMatchObject({ id: ana.id })
      await byGoogle(browserOf(old.origin), 'sign-in/social', { sub: 'google-2', email: 'grace@example.com', email_verified: true })
      expect((await living.send('get', '/whoami')).body).toMatchObject({ email: ana.email, emailVerified: false })
    } finally {
      await old.stop()
    }
    hash = (await knex()('account').where({ userId: ana.id, providerId: 'credential' }).first()).password
    grace = await knex()('user').where({ email: 'grace@example.com' }).first()
    const ended = knex()('session').where({ token: (expired.jar.get(cookie) ?? '').split('.')[0] })
    expect(await ended.update({ expiresAt: new Date(Date.now() - 1000).toISOString() })).toBe(1)

    await guide.code.prepare(knex())
    const moved = await guide.code.createAuth(knex(), options())
    auth = moved.auth
    await everyMove.addIdentities(moved.store, await rowsOf(knex(), guide.sql[0] ?? ''))
    const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession }
    app = appWith(auth, (app) => app.use(everyMove.keepSignedIn(move)))
  }, 60_000) // another process starts

  test('the old password signs in, and its hash is replaced; better-auth keeps the old one for a way back', async () => {
    await expectOldPassword(app, ana, async () => (await knex()('user').where({ id: ana.id }).first()).passwordHash)
    expect(await knex()('account').where({ providerId: 'credential' }).pluck('password')).toEqual([hash])
  })

  test('the reader reads its own form alone, and is false for the rest without a throw', async () => {
    const { reads, verify } = guide.code.reader
    expect([reads(hash), await verify(hash, ana.password), await verify(hash, `${ana.password} `)]).toEqual([true, true, false])
    expect(await verify(hash, ana.password.normalize('NFD'))).toBe(true)
    for (const other of ['', ':', hash.slice(1), `${hash}0`, `!${hash}`])
      expect([reads(other), await verify(other, ana.password)]).toEqual([false, false])
  })

  test('the Google accounts sign in to the accounts that they were linked to', async () => {
    for (const [sub, id] of Object.entries({ 'google-1': ana.id, 'google-2': grace.id }))
      expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
  })

  test('a living session goes on in a session of doorward, once; one that has expired or is made up signs nobody in', async () => {
    const token = living.jar.get(cookie) ?? ''
    const browser = browserOf(app, { [`__Secure-${cookie}`]: token }) // its name on https
    expect((await browser.send('get', '/whoami')).status).toBe(307)
    expect((await browser.send('get', '/whoami')).body).toEqual({ id: ana.id })
    for (const value of [token, expired.jar.get(cookie) ?? '', 'neverMade.x', ''])
      expect((await browserOf(app, { [cookie]: value }).send('get', '/whoami')).status).toBe(401)
  })

  test('the proof of an address moves along, and somebody new signs up without a name', async () => {
    const [{ id }] = await auth.service.signUp({ email: 'new@example.com', password: 'eight green bicycles' })
    expect((await auth.service.findUser(ana.id))?.emailVerifiedAt).toBe(null)
    expect((await auth.service.findUser(grace.id))?.emailVerifiedAt).toEqual(new Date(grace.createdAt))
    expect(await knex()('user').where({ id }).first()).toMatchObject({ name: null, emailVerified: 0 })
  })

  test('the way back: better-auth takes the old password again, and somebody new', async () => {
    const old = await startOldApp('better-auth', given())
    try {
      const send = (path: string, body: object) => browserOf(old.origin).send('post', `/api/auth/${path}`, body, { origin: old.origin })
      expect((await send('sign-in/email', ana)).body.user).toMatchObject({ id: ana.id })
      expect((await send('sign-up/email', { ...ana, email: 'back@example.com', name: 'Back' })).status).toBe(200)
    } finally {
      await old.stop()
    }
  })
})
