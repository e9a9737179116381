import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
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

  /** The users table of a framework, and the column that holds its password hashes. Null: none does, so `init` must ask. */
  const frameworks: Readonly<Record<string, [make: (table: Knex.CreateTableBuilder) => void, hash: string | null, name?: string]>> = {
    Devise: [
      (table) => {
        table.increments()
        table.string('email').notNullable().defaultTo('').unique()
        table.string('encrypted_password').notNullable().defaultTo('')
        table.dateTime('confirmed_at')
        table.dateTime('created_at').notNullable()
        table.dateTime('updated_at').notNullable()
      },
      'encrypted_password',
    ],
    Django: [
      (table) => {
        table.increments()
        table.string('password', 128).notNullable()
        table.dateTime('last_login')
        table.boolean('is_superuser').notNullable()
        table.string('username', 150).notNullable().unique()
        table.string('first_name', 150).notNullable()
        table.string('email', 254).notNullable()
        table.boolean('is_active').notNullable()
        table.dateTime('date_joined').notNullable()
      },
      'password',
      'auth_user',
    ],
    Laravel: [
      (table) => {
        table.bigIncrements()
        table.string('name').notNullable()
        table.string('email').notNullable().unique()
        table.dateTime('email_verified_at')
        table.string('password').notNullable()
        table.string('remember_token', 100)
      },
      'password',
    ],
    'authenticate_by of Rails': [
      (table) => {
        table.bigIncrements()
        table.string('email_address').notNullable()
        table.string('password_digest').notNullable()
      },
      'password_digest',
    ],
    'Auth.js': [
      (table) => {
        table.increments()
        table.string('name')
        table.string('email').unique()
        table.dateTime('emailVerified')
        table.text('image')
      },
      null,
    ],
    Supabase: [
      (table) => {
        table.uuid('id').primary()
        table.string('email')
        table.string('encrypted_password')
        table.dateTime('email_confirmed_at')
        table.boolean('is_super_admin')
      },
      'encrypted_password',
    ],
    WordPress: [
      (table) => {
        table.bigIncrements('ID')
        table.string('user_login', 60).notNullable()
        table.string('user_pass').notNullable()
        table.string('user_email', 100).notNullable()
        table.dateTime('user_registered').notNullable()
      },
      'user_pass',
      'wp_users',
    ],
    'a column pass': [
      (table) => {
        table.increments()
        table.string('email').notNullable()
        table.string('pass').notNullable()
      },
      'pass',
    ],
    'a name of two columns': [
      (table) => {
        table.increments()
        table.string('email').notNullable()
        table.string('password_hash').notNullable()
        table.string('first_name').notNullable()
        table.string('last_name').notNullable()
      },
      'password_hash',
    ],
    'a role as a number, and a column of unknown hashes': [
      (table) => {
        table.increments()
        table.string('email').notNullable()
        table.string('geheim').notNullable()
        table.integer('role').notNullable().defaultTo(0)
      },
      null,
    ],
  }

  test.each(Object.entries(frameworks))(
    'of %s has its hash column by its name, or init asks; no column for passwords is invented (25.6.2)',
    async (_name, [make, hash, name = 'users']) => {
      db = await open()
      await db.knex.schema.createTable(name, make)
      const folder = appBeside(db.config)
      const refused = await doorward('init --yes --json --providers google', { folder })
      if (hash === null) {
        const { error } = JSON.parse(refused.out) as { error: { code: string; message: string } }
        expect([refused.exitCode, error.code, existsSync(join(folder, 'auth.js'))]).toEqual([1, 'HASH_COLUMN', false])
        for (const column of Object.keys(await db.knex(name).columnInfo())) expect(error.message).toContain(column)
        const wrong = await doorward('init --yes --hash-column nowhere', { folder })
        expect([wrong.exitCode, wrong.err]).toEqual([2, expect.stringContaining('takes a column of users, or new')])
        expect((await doorward('init --yes --hash-column email', { folder })).exitCode).toBe(0)
        return
      }
      const written = readFileSync(join(folder, 'auth.js'), 'utf8')
      expect([refused.exitCode, written.includes(`hashedPassword: '${hash}'`)]).toEqual([0, true])
      expect(refused.out).not.toContain('hashed_password')
      if (name === 'auth_user') expect(written).toContain('username: email')
      if (_name === 'a name of two columns') expect(written).toContain('name: false')
    },
  )

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
