import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Express } from 'express'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AuthRouter, KnexStore } from '../../src'
import { legacyPassword, pepper } from '../passwords/legacy-hashes'
import { databases } from '../support/databases'
import { readGuide } from './guide'
import { appWith, browserOf, everyMove, expectOldPassword, type GivenOptions, onMove, rowsOf, runSql } from './moved-app'

const guide = readGuide<{
  createAuth(knex: Knex, options: GivenOptions): Promise<{ auth: AuthRouter; store: KnexStore }>
}>('moving/devise')

/** What devise/app.rb, a small app of Devise 4.8.1 and Rails 6.1.7, wrote. */
const dump = readFileSync(join(import.meta.dirname, 'devise/rows.sql'), 'utf8')
const ada = { id: '1', email: 'ada@example.com', password: legacyPassword }

for (const database of (await databases()).filter(({ name }) => name === 'postgres'))
  describe('from Devise', () => {
    const { knex, options, signInWithGoogle } = onMove(database)
    let app: Express
    let auth: AuthRouter

    beforeAll(async () => {
      process.env['DEVISE_PEPPER'] = pepper
      await runSql(knex(), dump)
      // A time that a zone with summer time skips.
      await runSql(
        knex(),
        `update users set created_at = '2026-03-29 01:30:00.987654', confirmed_at = '2026-03-29 01:30:00.987654' where id = 1`,
      )
      const [prepare = '', identities = ''] = guide.sql
      await runSql(knex(), prepare)
      const moved = await guide.code.createAuth(knex(), options())
      auth = moved.auth
      await everyMove.addIdentities(moved.store, await rowsOf(knex(), identities))
      app = appWith(auth)
    })
    afterAll(() => {
      delete process.env['DEVISE_PEPPER']
    })

    test('the old password, which had a pepper, signs in, and its hash is replaced', () =>
      expectOldPassword(app, ada, async () => (await knex()('users').where({ id: 1 }).first()).encrypted_password))

    test('the Google accounts sign in to the accounts that they were linked to, also one without a password', async () => {
      for (const [sub, id] of Object.entries({ 'google-1': '1', 'google-2': '3' }))
        expect((await signInWithGoogle(browserOf(app), sub)).body).toMatchObject({ user_id: id })
    })

    test('who never confirmed the address cannot sign in; who did has proven it, at the instant that Rails wrote', async () => {
      const waits = { email: 'waits@example.com', password: legacyPassword }
      expect((await browserOf(app).send('post', '/auth/login', waits)).status).toBe(401)
      expect((await auth.service.findUser('2'))?.isActive).toBe(false)
      expect((await auth.service.findUser('1'))?.emailVerifiedAt).toEqual(new Date('2026-03-29T01:30:00.987Z'))
    })

    test('the way back gives Rails its columns as they were', async () => {
      const columns = async () => (await knex()('users').columnInfo()) as unknown as Record<string, { type: string }>
      const instants = "select created_at = '2026-03-29 01:30:00.987654' as same from users where id = 1"
      await runSql(knex(), guide.sql[2] ?? '')
      expect((await columns())['created_at']?.type).toBe('timestamp without time zone')
      expect(await rowsOf(knex(), instants)).toEqual([{ same: true }])
    })
  })
