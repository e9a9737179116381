import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type AuthRouter,
  createAuthRouter,
  createAuthTables,
  createKnexStore,
  type HostTables,
  migrationSource,
  type UsersTableOptions,
} from '../../src'
import type { LoadedAuth } from '../../src/cli/auth-module'
import { migrate } from '../../src/cli/migrate'
import { newUser } from '../../src/testing/records'
import { testSecret } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { appFolder, doorward } from './run-command'

describe.each(await databases())('doorward migrate, on $name', ({ open }) => {
  let db: OpenDatabase
  let folder: string
  let auth: AuthRouter

  beforeAll(async () => {
    db = await open()
    auth = authOn(db)
    folder = appFolder(auth)
  })

  afterAll(() => db.close())

  const json = async (line: string) => {
    const { out, exitCode } = await doorward(`${line} --json`, { folder })
    return { exitCode, body: JSON.parse(out) }
  }
  const states = async () => {
    const { body } = await json('migrate status')
    return body.migrations.map(({ state }: { state: string }) => state)
  }

  test('sql prints what up would run, and runs nothing', async () => {
    const { out, exitCode } = await doorward('migrate sql', { folder })

    expect(exitCode).toBe(0)
    for (const table of ['auth_users', 'auth_sessions', 'auth_passkeys', 'auth_email_logins'])
      expect(out).toContain(`create table if not exists ${table} (`)
    expect(new Set(await states())).toEqual(new Set(['pending']))
  })

  test('up makes the tables and records every version in auth_migrations, never in knex_migrations', async () => {
    const { body } = await json('migrate up')
    const recorded = await db.knex('auth_migrations').pluck('name')

    expect(body.done).toEqual(recorded)
    expect(recorded).toEqual((await migrationSource.getMigrations([])).map((version) => migrationSource.getMigrationName(version)))
    expect(await db.knex.schema.hasTable('knex_migrations')).toBe(false)
    expect(new Set(await states())).toEqual(new Set(['done']))
    await auth.ready()
    expect((await doorward('users list', { folder })).exitCode).toBe(0)
  })

  test('a second time it does nothing, and neither has knex anything left to do', async () => {
    expect(await json('migrate up')).toEqual({ exitCode: 0, body: { done: [] } })
    expect((await doorward('migrate sql', { folder })).out).toBe('')
    const [, names] = await db.knex.migrate.latest({ migrationSource, tableName: 'auth_migrations' })
    expect(names).toEqual([])
  })

  test('sql prints only what is missing: it runs on a database that lacks one table and one index', async () => {
    await db.knex.schema.dropTable('auth_passkeys')
    await db.knex.schema.alterTable('auth_sessions', (table) => table.dropIndex([], 'auth_sessions_ended'))
    const { statements } = (await json('migrate sql')).body
    expect(statements.join('\n')).not.toContain('auth_users_created')
    for (const sql of statements) await db.knex.raw(sql)
    expect(new Set(await states())).toEqual(new Set(['done']))
  })

  test('what is missing again is pending, whatever is recorded, and --table names another record', async () => {
    await db.knex.schema.dropTable('auth_passkeys')
    expect((await json('migrate status')).body.migrations).toContainEqual({ name: 'doorward_0001_tables', state: 'pending' })

    expect((await json('migrate up --table other_migrations')).body.done).toEqual(['doorward_0001_tables'])
    expect(await db.knex.schema.hasTable('auth_passkeys')).toBe(true)
    expect(await db.knex('other_migrations').pluck('name')).toContain('doorward_0001_tables')
  })

  test.each(['migrate', 'migrate down', 'migrate up more', 'migrate status --table x'])('wrong usage is exit 2: %s', async (line) => {
    expect(await doorward(line, { folder })).toMatchObject({ exitCode: 2, out: '' })
  })
})

describe.each(await databases())('doorward migrate over tables that are there, on $name', ({ open }) => {
  let db: OpenDatabase

  beforeEach(async () => {
    db = await open()
  })
  afterEach(() => db.close())

  test('makes what is missing beside them: an account stays, and the host’s own record of migrations is left alone', async () => {
    const { knex } = db
    await createAuthTables(knex)
    await createKnexStore({ knex }).users.insert(newUser({ email: 'ada@example.com' }))
    await knex.schema.dropTable('auth_sessions')
    await knex.migrate.latest({ migrationSource: ownMigrations })
    const [folder, own] = [appFolder(authOn(db)), await knex('knex_migrations').orderBy('id')]
    const states = async () => JSON.parse((await doorward('migrate status --json', { folder })).out).migrations as { state: string }[]

    expect((await states()).map(({ state }) => state)).toEqual(['pending', ...Array(7).fill('done')])
    expect((await doorward('migrate up --json', { folder })).exitCode).toBe(0)
    expect((await states()).map(({ state }) => state)).toEqual(Array(8).fill('done'))
    expect(await knex('auth_sessions')).toEqual([])
    expect((await doorward('users show ada@example.com', { folder: appFolder(authOn(db)) })).exitCode).toBe(0)
    expect(await knex('knex_migrations').orderBy('id')).toEqual(own)
  })

  test('an empty database is no error for up, also where the app awaits auth.ready() when it starts', async () => {
    const log = logTap()
    const folder = appFolder(async () => {
      const auth = authOn(db, {}, log)
      await auth.ready()
      return auth
    })
    expect((await doorward('users list', { folder })).err).toContain('7 migrations are pending: run `npx doorward migrate up`')
    const errors = () => log.entries.filter(({ level }) => level === 'error')
    expect(errors()).toHaveLength(1)
    log.entries.length = 0

    expect(await doorward('migrate up', { folder })).toMatchObject({ exitCode: 0, err: '' })
    expect(errors()).toEqual([])
    expect((await doorward('users list', { folder })).exitCode).toBe(0)
  })

  test('makes what is missing beside a users table of the host’s, which the others refer to', async () => {
    await db.knex.schema.createTable('people', (table) => {
      table.increments('person_id')
      table.string('email', 320).notNullable().unique()
      table.text('hashed_password').notNullable()
      table.boolean('is_active').notNullable()
      for (const column of ['created_at', 'updated_at', 'email_verified_at']) table.dateTime(column, { precision: 3 })
    })
    const folder = appFolder(authOn(db, { users }))
    const { out } = await doorward('migrate sql', { folder })
    const done = JSON.parse((await doorward('migrate up --json', { folder })).out).done as string[]

    expect(out).toMatch(/references [`"]?people[`"]?/)
    expect(out).not.toMatch(/create table if not exists auth_users/)
    expect(done.length).toBeGreaterThan(0)
    expect(await db.knex.schema.hasTable('auth_users')).toBe(false)
    expect((await doorward('migrate up', { folder })).err).toBe('Nothing was missing.\n')
    expect((await doorward('users create ada@example.com', { folder: appFolder(authOn(db, { users })) })).exitCode).toBe(0)
  })
})

test('migrate up says that it took over the lock of another run', async () => {
  const migrations = { up: async () => ({ done: ['doorward_0001_tables'], tookLock: true }) }
  const loaded = { operations: { migrations } } as unknown as LoadedAuth // `migrate up` uses nothing else
  expect(await migrate(['up'], {}, loaded)).toEqual({
    json: { done: ['doorward_0001_tables'] },
    text: 'doorward_0001_tables',
    note: 'Another run left its lock in auth_migrations_lock and recorded nothing for a minute. This run took the lock over.',
  })
})

const ownMigrations = {
  getMigrations: async () => ['0001_of_the_host'],
  getMigrationName: (name: string) => name,
  getMigration: async () => ({ up: async () => {}, down: async () => {} }),
}

const none = { isAdmin: false, name: false, lastLoginAt: false, activatedAt: false, passwordSetAt: false } as const
const noFactor = { totpSecret: false, totpEnabledAt: false, totpLastStep: false } as const
const users: UsersTableOptions = { table: 'people', ids: 'integer', columns: { id: 'person_id', ...none, ...noFactor } }

function authOn({ knex }: OpenDatabase, tables: HostTables = {}, logger = logTap()): AuthRouter {
  return createAuthRouter({
    settings: { jwtSecret: testSecret, backendLinks: true, publicUrl: 'https://app.example.test' },
    store: createKnexStore({ knex, ...tables }),
    environment: 'test',
    logger,
  })
}
