import { randomBytes } from 'node:crypto'
import knex, { type Knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, migrationSource } from '../../src'
import { migrationsOf } from '../../src/store/knex/migrations'
import { databases, type OpenDatabase } from '../support/databases'

const all = (await migrationSource.getMigrations([])).map((version) => migrationSource.getMigrationName(version))
const none = { done: [], tookLock: false }

describe.each(await databases())('a database that lacks nothing, on $name', ({ name, open }) => {
  let opened: OpenDatabase
  const cleanups: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0)) await cleanUp()
    await opened?.close()
  })

  /** A pool that may read and write rows, but may not create anything. On SQLite it may not even write. */
  async function withoutCreate(): Promise<Knex> {
    const role = `doorward_${randomBytes(4).toString('hex')}`
    const { config } = opened
    if (config === null) throw new Error('the database lives in this process only')
    const { connection } = config
    if (name === 'sqlite') return connected({ ...config, connection: { ...Object(connection), options: { readonly: true } } })
    if (name === 'mariadb') {
      await opened.knex.raw(`create user ${role}@'%' identified by 'secret'`)
      cleanups.unshift(() => opened.knex.raw(`drop user ${role}@'%'`))
      await opened.knex.raw(`grant select, insert, update, delete on ${Object(connection).database}.* to ${role}@'%'`)
      return connected({ ...config, connection: { ...Object(connection), user: role, password: 'secret' } })
    }
    const [schema] = config.searchPath as string[]
    await opened.knex.raw(`create role ${role}`)
    cleanups.unshift(async () => {
      await opened.knex.raw(`drop owned by ${role}`)
      await opened.knex.raw(`drop role ${role}`)
    })
    await opened.knex.raw(`grant usage on schema ${schema} to ${role}`)
    await opened.knex.raw(`grant select, insert, update, delete on all tables in schema ${schema} to ${role}`)
    const afterCreate = (client: { query(sql: string, done: (error: unknown) => void): void }, done: (...given: unknown[]) => void) =>
      client.query(`set role ${role}`, (error) => done(error, client))
    return connected({ ...config, pool: { min: 0, max: 2, afterCreate } })
  }

  function connected(config: Knex.Config): Knex {
    const pool = knex({ pool: { min: 0, max: 1 }, ...config })
    cleanups.unshift(() => pool.destroy())
    return pool
  }

  const up = (pool: Knex, second?: () => Promise<unknown>) => migrationsOf(createKnexStore({ knex: pool }), second)?.up('auth_migrations')

  test('a role without CREATE may call createAuthTables and migrate up, and no migrations table is made', async () => {
    opened = await open()
    await createAuthTables(opened.knex)
    const limited = await withoutCreate()

    await createAuthTables(limited)
    expect(await up(limited)).toEqual(none)
    expect(await opened.knex.schema.hasTable('auth_migrations')).toBe(false)
  })

  test('a role without CREATE may call migrate up again after a full run', async () => {
    opened = await open()
    expect(await up(opened.knex)).toEqual({ done: all, tookLock: false })
    expect(await up(await withoutCreate())).toEqual(none)
  })

  test('a role without CREATE cannot make what is missing', async () => {
    opened = await open()
    await createAuthTables(opened.knex)
    await opened.knex.schema.dropTable('auth_passkeys')
    await expect(createAuthTables(await withoutCreate())).rejects.toThrow()
  })

  test('an index that an interrupted run did not make is pending, and migrate up makes it', async () => {
    opened = await open()
    await createAuthTables(opened.knex)
    await opened.knex.schema.alterTable('auth_sessions', (table) => table.dropIndex([], 'auth_sessions_ended'))
    expect(await up(opened.knex)).toEqual({ done: all.slice(0, 1), tookLock: false })
    expect(await up(opened.knex)).toEqual(none)
  })

  async function locked(): Promise<void> {
    opened = await open()
    await up(opened.knex)
    await opened
      .knex('auth_migrations')
      .where({ name: all.at(-1) })
      .delete()
    await opened.knex('auth_migrations_lock').update({ is_locked: 1 })
  }

  test('migrate up waits for the run that has the lock', async () => {
    await locked()
    let seconds = 0
    const second = async () => {
      seconds += 1
      if (seconds === 3) await opened.knex('auth_migrations_lock').update({ is_locked: 0 })
    }
    expect(await up(opened.knex, second)).toEqual(none)
    expect(seconds).toBe(3)
    expect(await opened.knex('auth_migrations').pluck('name')).toEqual(all)
  })

  test('migrate up takes over a lock that is a minute old, and no lock of a run that still records', async () => {
    await locked()
    let seconds = 0
    const second = async () => {
      seconds += 1
      if (seconds === 50) await opened.knex('auth_migrations').insert({ name: all.at(-1), batch: 2 })
    }
    expect(await up(opened.knex, second)).toEqual({ done: [], tookLock: true })
    expect(seconds).toBe(110)
    expect(await opened.knex('auth_migrations_lock').pluck('is_locked')).toEqual([0])
  })
})
