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

      expect(await purgeExpired(store, { before: AT })).toEqual({ users: 0, userTokens: 2, sessions: 203, emailLogins: 0 })

      expect(recording.stop()).toHaveLength(6) // 100, 100 and 3 sessions; the others fit in one batch
      expect(await purgeExpired(store, { before: later(1) })).toEqual({ users: 0, userTokens: 1, sessions: 1, emailLogins: 0 })
      expect(await purgeExpired(store, { before: later(1) })).toEqual({ users: 0, userTokens: 0, sessions: 0, emailLogins: 0 })
    } finally {
      await close()
    }
  })
})

test('a store without optional tables is purged of what it has; a `before` that is no instant is refused', async () => {
  const { userTokens, sessions: _, emailLogins: __, ...rest } = memoryStore()
  const store: AuthStore = { ...rest, userTokens }

  expect(await purgeExpired(store)).toEqual({ userTokens: 0 })
  await expect(purgeExpired(store, { before: new Date('never') })).rejects.toThrow(ConfigurationError)
})
