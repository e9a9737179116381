import { describe, expect, test, vi } from 'vitest'
import { type AuthStore, ConfigurationError, createAuthTables, createKnexStore, purgeExpired } from '../../src'
import { signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { AT, later, newIdentity, newSession, newUser, newUserToken, withUser } from './contract'
import { memoryStore } from './memory-store'

const day = 86_400

describe.each(await databases())('purgeExpired on $name', (database) => {
  const start = appPerTest(database)

  test('R-110 a session stays one row however often it is refreshed; the row goes when the session has ended', async () => {
    const mounted = await start()
    const store = createKnexStore({ knex: mounted.knex })
    const refresh = (refresh_token: string) => mounted.browser().post('/auth/refresh').send({ refresh_token })
    const purge = () => purgeExpired(store, { before: mounted.clock.now() })
    const { body: first } = await signIn(mounted)
    const { body: idle } = await signIn(mounted)
    let token = first.refresh_token
    for (let round = 0; round < 5; round += 1) {
      mounted.clock.advance(5 * day)
      token = (await refresh(token)).body.refresh_token
    }
    expect(await purge()).toMatchObject({ sessions: 1 })
    expect(await mounted.knex('auth_sessions').pluck('generation')).toEqual([5])

    expect((await refresh(first.refresh_token)).body.code).toBe('INVALID_TOKEN')
    expect((await refresh(token)).body.code).toBe('INVALID_TOKEN')
    expect(await purge()).toMatchObject({ sessions: 1 })
    for (const gone of [idle.refresh_token, token]) expect((await refresh(gone)).body.code).toBe('INVALID_TOKEN')
  })

  test('a pending account goes seven days after its last link expired, one that a row of the host refers to stays and is logged once', async () => {
    const { knex, close } = await database.open()
    try {
      await createAuthTables(knex)
      if (database.name === 'sqlite') await knex.raw('create table carts (owner varchar(36) references auth_users (id))')
      else {
        await knex.raw('create table carts as select id as owner from auth_users')
        await knex.raw('alter table carts add foreign key (owner) references auth_users (id)')
      }
      const store = createKnexStore({ knex })
      const pending = { isActive: false, activatedAt: null, lastLoginAt: null }
      const end = AT
      const link = (id: string, expiresAt: Date) => store.userTokens.insert(newUserToken(id, { purpose: 'ACTIVATION', expiresAt }))
      const [gone, waiting, active, unasked] = [
        await store.users.insert(newUser(pending)),
        await store.users.insert(newUser(pending)),
        await store.users.insert(newUser()),
        await store.users.insert(newUser(pending)),
      ]
      for (const { id } of [gone, waiting, active]) await link(id, end)
      await link(waiting.id, later(1_000, end))
      await store.identities.insert(newIdentity(gone.id))
      const days = (count: number) => later(count * day * 1_000, end)

      for (const early of [0, 6]) expect(await purgeExpired(store, { before: days(early) })).toMatchObject({ users: 0 })
      expect(await purgeExpired(store, { before: days(7) })).toMatchObject({ users: 1 })

      const left = await Promise.all([gone, waiting, active, unasked].map(async ({ id }) => (await store.users.find(id)) !== null))
      expect(left).toEqual([false, true, true, true])
      expect(await knex('auth_identities').where({ user_id: gone.id })).toEqual([])
      await knex('carts').insert({ owner: waiting.id })
      const warn = vi.fn()
      expect(await purgeExpired(store, { before: days(8), logger: { warn } })).toMatchObject({ users: 0 })
      expect(await purgeExpired(store, { before: days(9), logger: { warn } })).toMatchObject({ users: 0 })
      expect([await store.users.find(waiting.id), warn.mock.calls.map(([fields]) => fields)]).toEqual([waiting, [{ held: 1 }]])
    } finally {
      await close()
    }
  })

  test.each([
    ['a stranger asks for its activation link', '/activation/request', {}],
    ['a stranger asks for a reset', '/password-reset/request', {}],
    ['a stranger signs up with its address', '/signup', { password: 'a quiet harbour in winter' }],
  ])('an imported account without activated_at stays, also after %s; a sign-up of its age goes', async (_what, path, body) => {
    const host = await start({ settings: { returnTokenInResponse: true, publicUrl: 'https://app.example.test' } })
    const store = createKnexStore({ knex: host.knex })
    const imported = await store.users.insert(newUser({ isActive: false, activatedAt: null, lastLoginAt: null, email: 'old@example.test' }))
    const post = (email: string) =>
      host
        .browser()
        .post(`/auth${path}`)
        .send({ email, ...body })
    await host.browser().post('/auth/signup').send({ email: 'new@example.test', password: 'a quiet harbour in winter' }).expect(201)
    for (let days = 0; days < 60; days += 20) {
      if (days === 0) for (const email of ['old@example.test', 'new@example.test']) expect((await post(email)).status).toBeLessThan(300)
      else await post('old@example.test')
      await host.auth.drain()
      host.clock.advance(20 * day)
      await purgeExpired(store, { before: host.clock.now() })
    }
    expect(await host.knex('auth_user_tokens').where({ user_id: imported.id, purpose: 'ACTIVATION' })).not.toHaveLength(0)
    expect(await host.knex('auth_users').pluck('id')).toEqual([imported.id])
  })

  test('goes batch by batch, counts per table, and leaves what has time left; a second purge finds nothing', async () => {
    const { knex, close } = await database.open()
    try {
      await createAuthTables(knex)
      const store = createKnexStore({ knex })
      const { id } = await withUser(store)
      await store.transaction(async ({ userTokens, sessions }) => {
        for (let age = 0; age < 203; age += 1)
          await sessions?.insert(newSession(id, { expiresAt: later(-age), kind: age % 2 === 0 ? 'tokens' : 'session' }))
        for (const end of [AT, later(-1), later(1)]) await userTokens.insert(newUserToken(id, { expiresAt: end }))
        await sessions?.insert(newSession(id, { expiresAt: later(1) }))
      })
      const recording = recordQueries(knex)

      expect(await purgeExpired(store, { before: AT })).toEqual({
        users: 0,
        userTokens: 2,
        sessions: 203,
        emailLogins: 0,
        trustedDevices: 0,
        invitations: 0,
        outbox: 0,
      })

      const reads = recording.stop().filter((sql) => /^select .*auth_sessions/.test(sql))
      expect(reads.length).toBeGreaterThan(2)
      // A batch begins after the last row of the batch before it. All of these sessions are the oldest rows of the index.
      expect(reads.map((sql) => /id[`"]?\)? > /.test(sql))).toEqual(reads.map((_, batch) => batch > 0))
      expect(await purgeExpired(store, { before: later(1) })).toEqual({
        users: 0,
        userTokens: 1,
        sessions: 1,
        emailLogins: 0,
        trustedDevices: 0,
        invitations: 0,
        outbox: 0,
      })
      expect(await purgeExpired(store, { before: later(1) })).toEqual({
        users: 0,
        userTokens: 0,
        sessions: 0,
        emailLogins: 0,
        trustedDevices: 0,
        invitations: 0,
        outbox: 0,
      })
    } finally {
      await close()
    }
  })

  test('an account that a row of the host refers to stays, the others of its batch go', async () => {
    const { knex, close } = await database.open()
    try {
      await createAuthTables(knex)
      if (database.name === 'sqlite') await knex.raw('create table carts (owner varchar(36) references auth_users (id))')
      else {
        await knex.raw('create table carts as select id as owner from auth_users')
        await knex.raw('alter table carts add foreign key (owner) references auth_users (id)')
      }
      const store = createKnexStore({ knex })
      const held: string[] = []
      for (let number = 0; number < 45; number += 1) {
        const { id } = await store.users.insert(newUser({ isActive: false, activatedAt: null, lastLoginAt: null }))
        await store.userTokens.insert(newUserToken(id, { purpose: 'ACTIVATION', expiresAt: later(-8 * day * 1_000) }))
        if (number % 20 === 7) await knex('carts').insert({ owner: id })
        if (number % 20 === 7) held.push(id)
      }
      const warn = vi.fn()
      expect(await purgeExpired(store, { before: AT, logger: { warn } })).toMatchObject({ users: 43 })
      expect((await knex('auth_users').pluck('id')).sort()).toEqual(held.sort())
      expect(warn.mock.calls.map(([fields]) => fields)).toEqual([{ held: 2 }])
    } finally {
      await close()
    }
  })

  test('to end all sessions of an account reaches those that live and the newest that expired, because these make a known device', async () => {
    const host = await start()
    const { body: old } = await signIn(host)
    host.clock.advance(60 * day)
    const { body } = await signIn(host)
    const statements: string[] = []
    host.knex.on('query', ({ sql }: { sql: string }) => statements.push(sql))
    await host.browser().post('/auth/logout').send({ refresh_token: body.refresh_token, all_sessions: true }).expect(204)

    const rows = await host.knex('auth_sessions').orderBy('created_at').select('revoked_at')
    expect(rows.map(({ revoked_at: at }) => at !== null)).toEqual([true, true])
    const ending = statements.filter((sql) => /^update .*auth_sessions/.test(sql))
    expect([ending.length, /order by .*desc limit/.test(ending[0] ?? '')]).toEqual([1, true]) // however many have expired
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: old.refresh_token })).body.code).toBe('INVALID_TOKEN')
  })

  test('a login beyond maxSessionsPerUser deletes the rows of the account that had ended, and no others', async () => {
    const host = await start({ settings: { maxSessionsPerUser: 2 } })
    await signIn(host)
    host.clock.advance(60 * day)
    expect((await signIn(host, host.browser(), { profile: { sub: 'another', email: 'bo@example.test' } })).status).toBe(200)
    for (let number = 0; number < 2; number += 1) await signIn(host)
    const ids = () => host.knex('auth_sessions').orderBy('created_at').pluck('id')
    expect(await ids()).toHaveLength(4) // the expired one, that of the other person, and two
    host.clock.advance(60)
    await signIn(host)
    expect(await ids()).toHaveLength(4) // that of the other person, two, and the one that this login ended
    host.clock.advance(60)
    await signIn(host)
    expect(await ids()).toHaveLength(4)
  })
})

test('a store without optional tables is purged of what it has; a `before` that is no instant is refused', async () => {
  const { userTokens, sessions: _, emailLogins: __, trustedDevices: ___, invitations: ____, outbox: _____, ...rest } = memoryStore()
  const store: AuthStore = { ...rest, userTokens }

  expect(await purgeExpired(store)).toEqual({ userTokens: 0 })
  await expect(purgeExpired(store, { before: new Date('never') })).rejects.toThrow(ConfigurationError)
})
