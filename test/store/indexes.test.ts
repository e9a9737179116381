import type { Knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, type HostTables, migrationSource, migrationSourceFor } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { newIdentity, newSession, newUser } from './contract'

const reachable = await databases()
const postgres = reachable.find(({ name }) => name === 'postgres')
const tableName = 'auth_migrations'
const index = 'auth_users_created'

/** An index that is missing on a table that may be large and in use. */
describe.skipIf(!postgres)('an index that is added to a table on PostgreSQL', () => {
  let opened: OpenDatabase
  afterEach(() => opened?.close())

  async function withoutIndex({ users }: { users: number }): Promise<Knex> {
    if (!postgres) throw new Error('skipped')
    opened = await postgres.open()
    const { knex } = opened
    await createAuthTables(knex)
    for (let number = 0; number < users; number += 1) await createKnexStore({ knex }).users.insert(newUser())
    await knex.raw('drop index ??', [index])
    return knex
  }

  async function buildsOf(knex: Knex, work: () => Promise<unknown>): Promise<string[]> {
    const queries = recordQueries(knex)
    await work()
    return queries.stop().filter((sql) => sql.includes(index) && sql.startsWith('create index'))
  }

  const isValid = async (knex: Knex) => {
    const { rows } = await knex.raw('select indisvalid from pg_index where indexrelid = to_regclass(?)', [index])
    return rows[0]?.indisvalid === true
  }

  test('is built CONCURRENTLY where the table has rows, and once', async () => {
    const knex = await withoutIndex({ users: 2 })
    expect(await buildsOf(knex, () => createAuthTables(knex))).toEqual([expect.stringContaining('create index concurrently')])
    expect(await isValid(knex)).toBe(true)
    expect(await buildsOf(knex, () => createAuthTables(knex))).toEqual([])
  })

  test('is built CONCURRENTLY by the migration too', async () => {
    const knex = await withoutIndex({ users: 2 })
    const config = { migrationSource, tableName }
    expect(await buildsOf(knex, () => knex.migrate.latest(config))).toEqual([expect.stringContaining('create index concurrently')])
    expect(await isValid(knex)).toBe(true)
  })

  test('is built at once where the table is empty, and in a transaction of the host', async () => {
    const empty = await withoutIndex({ users: 0 })
    expect(await buildsOf(empty, () => createAuthTables(empty))).toEqual([expect.not.stringContaining('concurrently')])
    await opened.close()

    const knex = await withoutIndex({ users: 2 })
    const inTransaction = () => knex.transaction((trx) => createAuthTables(trx))
    expect(await buildsOf(knex, inTransaction)).toEqual([expect.not.stringContaining('concurrently')])
    expect(await isValid(knex)).toBe(true)
  })

  test('is built anew where an earlier build was interrupted', async () => {
    const knex = await withoutIndex({ users: 2 })
    await createAuthTables(knex)
    await knex.raw('update pg_index set indisvalid = false where indexrelid = to_regclass(?)', [index])
    expect(await buildsOf(knex, () => createAuthTables(knex))).toHaveLength(1)
    expect(await isValid(knex)).toBe(true)
  })
})

describe.each(reachable)('migrationSourceFor on $name', (database) => {
  let opened: OpenDatabase
  afterEach(() => opened?.close())

  test('makes and takes back the tables beside those of the host, whose keys they refer to', async () => {
    opened = await database.open()
    const { knex } = opened
    await knex.schema.createTable('people', (table) => {
      table.increments('id')
      table.boolean('is_active').notNullable()
      table.string('email', 320).notNullable().unique()
      table.text('hashed_password').notNullable()
      for (const column of ['created_at', 'updated_at']) table.bigInteger(column).notNullable()
    })
    const absent = [
      'isAdmin',
      'lastLoginAt',
      'name',
      'totpSecret',
      'totpEnabledAt',
      'totpLastStep',
      'emailVerifiedAt',
      'activatedAt',
      'passwordSetAt',
    ]
    const columns = Object.fromEntries(absent.map((field) => [field, false]))
    const tables: HostTables = { users: { table: 'people', ids: 'integer', instants: 'epoch_ms', columns }, recoveryCodes: false }
    const config = { migrationSource: migrationSourceFor(tables), tableName }

    await knex.migrate.latest(config)

    const store = createKnexStore({ knex, ...tables })
    const { id } = await store.users.insert(newUser())
    await store.identities?.insert(newIdentity(id))
    await store.sessions?.insert(newSession(id))
    await knex('people').delete()
    for (const table of ['auth_identities', 'auth_sessions']) expect(await knex(table)).toEqual([])
    for (const table of ['auth_users', 'auth_recovery_codes']) expect(await knex.schema.hasTable(table)).toBe(false)

    await knex.migrate.rollback(config, true)
    expect(await knex.schema.hasTable('auth_sessions')).toBe(false)
    expect(await knex.schema.hasTable('people')).toBe(true)
  })
})
