import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import { dialectOf } from '../../src/store/knex/dialect-of'
import { createKnexStore } from '../../src/store/knex/knex-store'
import { migrationSource } from '../../src/store/knex/schema'
import { databases, type OpenDatabase } from '../support/databases'
import { freshHash, newIdentity, newUser, newUserToken } from './contract'

const tableName = 'auth_migrations'
const versions = await migrationSource.getMigrations([])
const names = versions.map((version) => migrationSource.getMigrationName(version))
/** What the last one does to sessions is upgrade.test.ts's. */
const steps = names.slice(1, 4).map((name, index) => ({ name, predecessors: index + 1 }))

describe.each(await databases())('migrations on $name', (database) => {
  let opened: OpenDatabase | undefined
  afterEach(() => opened?.close())

  test.each(steps)(
    '$name leaves every row that its predecessors’ tables hold as it was, and can be taken back',
    async ({ predecessors }) => {
      opened = await database.open()
      const { knex } = opened
      await migrate(knex, predecessors)
      const tables = await tablesOf(knex)
      await fill(knex, tables)
      const before = await rowsOf(knex, tables)
      expect(Object.values(before).map((rows) => rows.length)).toEqual(tables.map(() => 2))

      await migrate(knex, predecessors + 1)
      expect(await rowsOf(knex, tables)).toEqual(before)
      expect((await createKnexStore({ knex }).users.list({ filters: [], after: null, limit: 9 })).users).toHaveLength(2)

      await knex.migrate.down({ migrationSource: source(predecessors + 1), tableName })
      expect(await rowsOf(knex, tables)).toEqual(before)
      expect(await tablesOf(knex)).toEqual(tables)
    },
  )
})

/** As the package was when it had so many. */
function source(count: number): Knex.MigrationSource<unknown> {
  return { ...migrationSource, getMigrations: async () => versions.slice(0, count) }
}

async function migrate(knex: Knex, count: number): Promise<void> {
  await knex.migrate.latest({ migrationSource: source(count), tableName })
  const done = await knex(tableName).orderBy('id').pluck('name')
  expect(done).toEqual(names.slice(0, count))
}

const all = [
  ...['auth_users', 'auth_identities', 'auth_user_tokens', 'auth_refresh_tokens', 'auth_recovery_codes', 'auth_sessions'],
  ...['auth_counters', 'auth_audit_log', 'auth_passkeys'],
]

async function tablesOf(knex: Knex): Promise<string[]> {
  const found = await Promise.all(all.map(async (table) => ((await knex.schema.hasTable(table)) ? [table] : [])))
  return found.flat()
}

/** Two rows in each: one with all that may be null, one without. */
async function fill(knex: Knex, tables: readonly string[]): Promise<void> {
  const store = createKnexStore({ knex })
  const now = new Date()
  const instant = dialectOf(knex).instantToColumn(now)
  const at = { created_at: instant, expires_at: instant }
  const oldRefreshToken = (user_id: string, rest: object) => ({
    ...{ ...at, id: randomUUID(), user_id, token_hash: freshHash(), family_id: randomUUID(), family_expires_at: instant },
    ...rest,
  })
  const oldSession = (user_id: string, rest: object) => ({
    ...{ ...at, id: randomUUID(), user_id, session_hash: freshHash(), amr: 'pwd', last_seen_at: instant },
    ...rest,
  })
  for (const isFull of [false, true]) {
    const user = await store.users.insert(
      newUser(isFull ? { name: 'Ada', totpSecret: 'sealed', totpEnabledAt: now, lastLoginAt: now } : {}),
    )
    await store.identities.insert(newIdentity(user.id, isFull ? { email: 'ada@example.test', emailVerified: true, name: 'Ada' } : {}))
    await store.userTokens.insert(newUserToken(user.id, isFull ? { payload: 'x', usedAt: now } : {}))
    await knex('auth_refresh_tokens').insert(
      oldRefreshToken(user.id, isFull ? { parent_id: randomUUID(), amr: 'pwd', used_at: instant, revoked_at: instant } : {}),
    )
    await store.recoveryCodes.replaceForUser(user.id, [freshHash()])
    await knex('auth_sessions').insert(oldSession(user.id, isFull ? { ip: '::1', user_agent: 'Agent/1.0' } : {}))
    if (tables.includes('auth_counters')) await knex('auth_counters').insert({ counter_key: `key-${isFull}`, count: 1, ends_at: 2 ** 42 })
  }
}

async function rowsOf(knex: Knex, tables: readonly string[]): Promise<Record<string, unknown[]>> {
  const order: Record<string, string> = { auth_counters: 'counter_key' }
  return Object.fromEntries(
    await Promise.all(tables.map(async (table) => [table, await knex(table).orderBy(order[table] ?? 'id')] as const)),
  )
}
