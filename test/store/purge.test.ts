import { describe, expect, test } from 'vitest'
import { type AuthStore, ConfigurationError, createAuthTables, createKnexStore, purgeExpired } from '../../src'
import { signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { AT, later, newRefreshToken, newSession, newUserToken, withUser } from './contract'
import { memoryStore } from './memory-store'

const day = 86_400

describe.each(await databases())('purgeExpired on $name', (database) => {
  const start = appPerTest(database)

  test('R-110 a replay still ends its family after a purge; the family goes when it has ended for good', async () => {
    const mounted = await start()
    const store = createKnexStore({ knex: mounted.knex })
    const refresh = (refresh_token: string) => mounted.browser().post('/auth/refresh').send({ refresh_token })
    const { body: first } = await signIn(mounted)
    const { body: second } = await refresh(first.refresh_token)
    mounted.clock.advance(29 * day) // past the idle end of both, before the end of the family
    expect(await purgeExpired(store, { before: mounted.clock.now() })).toMatchObject({ refreshTokens: 0 })

    expect((await refresh(first.refresh_token)).body.code).toBe('INVALID_TOKEN')

    const rows = await mounted.knex('auth_refresh_tokens').select('revoked_at')
    expect(rows.map(({ revoked_at }) => revoked_at !== null)).toEqual([true, true])
    mounted.clock.advance(day)
    expect(await purgeExpired(store, { before: mounted.clock.now() })).toMatchObject({ refreshTokens: 2 })
    expect((await refresh(second.refresh_token)).body.code).toBe('INVALID_TOKEN')
  })

  test('goes batch by batch, counts per table, and leaves what has time left; a second purge finds nothing', async () => {
    const { knex, close } = await database.open()
    try {
      await createAuthTables(knex)
      const store = createKnexStore({ knex })
      const { id } = await withUser(store)
      await store.transaction(async ({ userTokens, refreshTokens, sessions }) => {
        for (let age = 0; age < 203; age += 1)
          await refreshTokens?.insert(newRefreshToken(id, { expiresAt: later(-age), familyExpiresAt: later(-age) }))
        for (const end of [AT, later(-1), later(1)]) {
          await userTokens.insert(newUserToken(id, { expiresAt: end }))
          await sessions?.insert(newSession(id, { expiresAt: end }))
        }
        await refreshTokens?.insert(newRefreshToken(id, { expiresAt: AT, familyExpiresAt: later(1) }))
      })
      const recording = recordQueries(knex)

      expect(await purgeExpired(store, { before: AT })).toEqual({ userTokens: 2, refreshTokens: 203, sessions: 2 })

      expect(recording.stop()).toHaveLength(5) // 100, 100 and 3 refresh tokens; the others fit in one batch
      expect(await purgeExpired(store, { before: later(1) })).toEqual({ userTokens: 1, refreshTokens: 1, sessions: 1 })
      expect(await purgeExpired(store, { before: later(1) })).toEqual({ userTokens: 0, refreshTokens: 0, sessions: 0 })
    } finally {
      await close()
    }
  })
})

test('a store without optional tables is purged of what it has; a `before` that is no instant is refused', async () => {
  const { userTokens, refreshTokens: _, sessions: __, ...rest } = memoryStore()
  const store: AuthStore = { ...rest, userTokens }

  expect(await purgeExpired(store)).toEqual({ userTokens: 0 })
  await expect(purgeExpired(store, { before: new Date('never') })).rejects.toThrow(ConfigurationError)
})
