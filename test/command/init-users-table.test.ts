import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import type { Knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import { checkTables, createAuthTables, createKnexStore, type HostTables } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { doorward, emptyFolder } from './run-command'

const modules = join(import.meta.dirname, '../../node_modules')

describe.each(await databases())('the users table that init finds, on $name', ({ open }) => {
  let db: OpenDatabase

  afterEach(() => db.close())

  async function initBeside(make: (table: Knex.CreateTableBuilder) => void, flags = '') {
    db = await open()
    await db.knex.schema.createTable('people', make)
    const folder = appBeside(db.config)
    const { exitCode, out } = await doorward(`init --yes --json ${flags}`, { folder })
    expect(exitCode).toBe(0)
    const [, text = ''] = /^const tables = (\{[\s\S]*?^\})/m.exec(readFileSync(join(folder, 'auth.js'), 'utf8')) ?? []
    const { users_table: found } = JSON.parse(out) as { users_table: { table: string; changes: { sql: string | null }[] } | null }
    return { found, tables: runInNewContext(`(${text || 'undefined'})`) as HostTables }
  }

  async function errors(tables: HostTables): Promise<string[]> {
    await createAuthTables(db.knex, tables)
    const findings = await checkTables(db.knex, tables)
    return findings.filter(({ level }) => level === 'error').map(({ key }) => key)
  }

  test('is mapped by its columns, in whatever words', async () => {
    const { found, tables } = await initBeside((table) => {
      table.increments('userId')
      table.string('emailAddress', 320).notNullable().unique()
      table.text('encrypted_password').notNullable()
      table.boolean('enabled').notNullable()
      table.string('admin') // of another kind than ours
      table.string('company').notNullable()
      table.dateTime('createdAt', { precision: 3 }).notNullable()
      table.dateTime('updated_at', { precision: 3 }).notNullable()
      table.dateTime('confirmed_at', { precision: 3 })
    })

    expect(found).toEqual({ table: 'people', changes: [] })
    expect(tables.users).toMatchObject({
      table: 'people',
      ids: 'integer',
      columns: {
        id: 'userId',
        email: 'emailAddress',
        hashedPassword: 'encrypted_password',
        isActive: 'enabled',
        emailVerifiedAt: 'confirmed_at',
        isAdmin: false,
        name: false,
      },
    })
    expect(await errors(tables)).toEqual([])
    const user = { email: 'ada@example.com', hashedPassword: '!', name: null, isActive: true, isAdmin: false }
    const { id } = await createKnexStore({ knex: db.knex, ...tables }).users.insert({
      ...user,
      totpSecret: null,
      totpEnabledAt: null,
      totpLastStep: null,
      lastLoginAt: null,
      emailVerifiedAt: null,
      activatedAt: null,
      passwordSetAt: null,
      createdAt: new Date(),
      updatedAt: new Date(),
    })
    expect(await db.knex('people').select('userId', 'company')).toEqual([{ userId: Number(id), company: '' }])
  })

  test('and after the statements that init prints nothing is missing in it', async () => {
    const { found, tables } = await initBeside((table) => {
      table.uuid('id').primary()
      table.string('email', 320).notNullable().unique()
      table.string('password_hash', 60).notNullable()
    }, '--providers google')

    const statements = found?.changes.map(({ sql }) => String(sql)) ?? []
    for (const column of ['is_active', 'created_at', 'updated_at', 'email_verified_at', 'name'])
      expect(statements.join('\n')).toContain(column)
    for (const statement of statements) await db.knex.raw(statement)
    expect(await errors(tables)).toEqual([])
  })

  test('is none where a table of that name holds something else', async () => {
    const { found, tables } = await initBeside((table) => {
      table.increments()
      table.string('shoe_size')
    })

    expect([found, tables]).toEqual([null, undefined])
  })
})

test('a database that does not answer holds init up for four seconds, and is named', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const folder = appBeside({ client: 'pg', connection: { host: '127.0.0.1', port, user: 'ada', password: 'hidden' } })
  const { exitCode, err } = await doorward('init --yes', { folder })
  silent.close()

  expect({ exitCode, err }).toEqual({ exitCode: 0, err: 'No users table was looked for: it did not answer within 4 seconds.\n' })
  expect(readFileSync(join(folder, 'auth.js'), 'utf8')).not.toContain('tables')
})

function appBeside(config: Knex.Config | null): string {
  const folder = emptyFolder()
  mkdirSync(join(folder, 'node_modules'))
  for (const name of ['knex', 'better-sqlite3', 'pg', 'mysql2']) symlinkSync(join(modules, name), join(folder, 'node_modules', name))
  writeFileSync(join(folder, 'knexfile.js'), `module.exports = ${JSON.stringify(config)}\n`)
  return folder
}
