import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Express } from 'express'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore } from '../../src'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, browserOf, everyMove, expectOldPassword, type GivenOptions, type Move, onMove, rowsOf, runSql } from './moved-app'

const guide = readGuide<{
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter<{ delivery: 'session' }>; store: KnexStore }>
  findOldSession: Move['findOldSession']
}>('moving/django')

/** What django/app.py, a small app of Django 5.2.17 and django-allauth 65.16.1, wrote: its tables, and the session keys of its browsers. */
const dump = readFileSync(join(import.meta.dirname, 'django/rows.sql'), 'utf8')
const sessions = Object.fromEntries([...dump.matchAll(/^-- (\w+): (\w+)$/gm)].map(([, name = '', key = '']) => [name, key]))
const ada = { id: '1', email: 'ada@example.com', password: 'Ärmel & naïve Straße 9' }

for (const database of (await databases()).filter(({ name }) => name === 'postgres'))
  describe('from Django', () => {
    const { knex, options, signInWithGoogle } = onMove(database)
    const [doubles = '', prepare = '', identities = '', wayBack = ''] = guide.sql
    let app: Express
    let auth: AuthRouter<{ delivery: 'session' }>
    let joined: Date[]

    beforeAll(async () => {
      process.env['DJANGO_SECRET_KEY'] = 'django-insecure-of-the-old-app'
      await runSql(knex(), dump)
      const end = (seconds: number) => ({ expire_date: new Date(Date.now() + seconds * 1000) })
      await knex()('django_session').update(end(86_400)) // as if they had begun today
      expect(await knex()('django_session').where({ session_key: sessions['expired'] }).update(end(-1))).toBe(1)
      joined = await knex()('auth_user').orderBy('id').pluck('date_joined')

      await runSql(knex(), prepare)
      const moved = await guide.code.createAuth(knex(), options())
      auth = moved.auth
      await everyMove.addIdentities(moved.store, await rowsOf(knex(), identities))
      const move = { ...moved, knex: knex(), movedAt: new Date(), findOldSession: guide.code.findOldSession }
      app = appWith(auth, (app) => app.use(everyMove.keepSignedIn(move)))
    })

    afterAll(() => {
      delete process.env['DJANGO_SECRET_KEY']
    })

    test('two accounts of one address are listed before the move', async () => {
      const trx = await knex().transaction()
      await trx.raw('drop index auth_user_email_unique')
      await trx('auth_user').where({ id: 2 }).update({ email: 'ADA@example.com' })
      expect(await rowsOf(trx, doubles)).toEqual([{ email: 'ada@example.com', accounts: '2', usernames: 'ada, grace' }])
      await trx.rollback()
    })

    test('the old password signs in, and its hash is replaced', () =>
      expectOldPassword(app, ada, async () => (await knex()('auth_user').where({ id: 1 }).first()).password))

    test('a living session goes on once, also after its hash was replaced; one that Django had ended, or of nobody, signs nobody in', async () => {
      const { living = '', expired = '', signedOut = '', olderPassword = '' } = sessions
      const browser = browserOf(app, { sessionid: living })
      expect((await browser.send('get', '/whoami')).status).toBe(307)
      expect((await browser.send('get', '/whoami')).body).toEqual({ id: '1' })
      const rows = await knex()('django_session').whereIn('session_key', [expired, signedOut, olderPassword])
      expect(rows).toHaveLength(3)
      for (const sessionid of [living, expired, signedOut, olderPassword, 'neverMade'])
        expect((await browserOf(app, { sessionid }).send('get', '/whoami')).status).toBe(401)
    })

    test('the Google accounts sign in to the accounts that they were linked to, also one without a password', async () => {
      for (const [sub, id] of Object.entries({ 'google-1': '1', 'google-2': '2' }))
        expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
    })

    test('name, role, proof of the address and closed accounts move along', async () => {
      const [first, second, third, , fifth] = await Promise.all(['1', '2', '3', '4', '5'].map((id) => auth.service.findUser(id)))
      expect(first).toMatchObject({ name: 'Ada Lovelace', isAdmin: true, emailVerifiedAt: joined[0] })
      expect(second).toMatchObject({ name: null, isAdmin: false, emailVerifiedAt: null, isActive: true })
      expect(third).toMatchObject({ email: 'user-3@no-address.invalid', isActive: false })
      expect((await browserOf(app).send('post', '/auth/login', { email: third?.email, password: ada.password })).status).toBe(401)
      expect(fifth?.email).toBe('linus@example.com')
    })

    test('somebody new gets the columns that Django wants', async () => {
      const [{ id }] = await auth.service.signUp({ email: 'new@example.com', password: 'eight green bicycles' })
      expect(await knex()('auth_user').where({ id }).first()).toMatchObject({ username: 'new@example.com', is_staff: false })
    })

    /** With the hash of this form Django 5.2.17 and argon2-cffi 25.1 took the password. */
    test("the way back writes argon2id as Django's own hasher does", async () => {
      await browserOf(app).send('post', '/auth/login', ada)
      await runSql(knex(), wayBack)
      expect((await knex()('auth_user').where({ id: 1 }).first()).password).toMatch(/^argon2\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    })
  })
