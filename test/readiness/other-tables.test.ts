import { afterEach, describe, expect, test } from 'vitest'
import { checkTables, createAuthTables, type HostTables } from '../../src'
import { createRenamedTables } from '../store/host-tables'
import { type DatabaseName, databases, type OpenDatabase } from '../support/databases'
import { createPeople, keysOf, PEOPLE } from './wrong-tables'

const id: Readonly<Record<DatabaseName, string>> = { sqlite: 'varchar(36)', postgres: 'uuid', mariadb: 'varchar(36)' }
const instant: Readonly<Record<DatabaseName, string>> = { sqlite: 'integer', postgres: 'timestamptz', mariadb: 'datetime(3)' }
const end: Readonly<Record<DatabaseName, string>> = {
  sqlite: '',
  postgres: '',
  mariadb: ' character set utf8mb4 collate utf8mb4_nopad_bin',
}

describe.each(await databases())('tables beside the users on $name', (database) => {
  let opened: OpenDatabase
  afterEach(() => opened?.close())

  async function open() {
    opened = await database.open()
    await createAuthTables(opened.knex)
    return opened.knex
  }

  /** All findings of these tables, none of which is left once each SQL was run. */
  async function mended(tables: HostTables): Promise<string[]> {
    const findings = await checkTables(opened.knex, tables)
    for (const { sql } of findings) if (sql !== null) await opened.knex.raw(sql)
    const left = await checkTables(opened.knex, tables)
    expect(left.map(({ key }) => key)).toEqual(findings.filter(({ sql }) => sql === null).map(({ key }) => key))
    return keysOf(findings)
  }

  test('identities without rules: unique (provider, subject) is an error, the others are warnings', async () => {
    const knex = await open()
    await knex.raw(
      `create table links (id ${id[database.name]} primary key, user_id ${id[database.name]} not null, provider varchar(64) not null,
       subject varchar(255) not null, email varchar(320), email_verified boolean, name varchar(200), picture varchar(1024),
       created_at ${instant[database.name]} not null, last_login_at ${instant[database.name]} not null)${end[database.name]}`,
    )
    const [finding] = await checkTables(knex, { identities: { table: 'links' } })
    expect(finding).toMatchObject({ table: 'links', column: 'provider, subject' })
    expect(await mended({ identities: { table: 'links' } })).toEqual([
      'error identities.provider,subject:unique',
      'warning identities.user_id,provider:unique',
      'warning identities.user_id:foreign-key',
    ])
  })

  test('one-shot tokens without rules: unique on the hash is an error, indexes are warnings', async () => {
    const knex = await open()
    await knex.raw(
      `create table slips (id ${id[database.name]} primary key, user_id ${id[database.name]} not null references auth_users (id), token_hash varchar(64) not null,
       purpose varchar(20) not null, payload varchar(1000), expires_at ${instant[database.name]} not null, used_at ${instant[database.name]},
       created_at ${instant[database.name]} not null)${end[database.name]}`,
    )
    expect(await mended({ userTokens: { table: 'slips' } })).toEqual(
      ['error userTokens.token_hash:unique', 'warning userTokens.user_id:index', 'warning userTokens.expires_at:index'].filter(
        (key) => database.name !== 'mariadb' || key !== 'warning userTokens.user_id:index',
      ),
    ) // a foreign key makes an index there
  })

  test('sessions that lack columns, and one-shot tokens that are too narrow', async () => {
    const knex = await open()
    for (const column of ['rotated_at', 'is_persistent', 'ends_at'])
      await knex.schema.alterTable('auth_sessions', (table) => table.dropColumn(column))
    const narrow = database.name === 'sqlite' ? [] : ['error userTokens.purpose:width']
    if (database.name === 'postgres') await knex.raw('alter table auth_user_tokens alter purpose type varchar(10)')
    if (database.name === 'mariadb') await knex.raw('alter table auth_user_tokens modify purpose varchar(10) not null')
    expect(await mended({})).toEqual([...narrow, 'error sessions.rotated_at', 'error sessions.is_persistent', 'error sessions.ends_at'])
  })

  test('numbers that do not fit', async () => {
    if (database.name === 'sqlite') return // every integer has eight bytes
    const knex = await open()
    const change = database.name === 'postgres' ? 'alter column totp_last_step type smallint' : 'modify totp_last_step smallint'
    await knex.raw(`alter table auth_users ${change}`)
    expect(await mended({})).toEqual(['error users.totp_last_step:width'])
  })

  test('tables that are false, and the recovery codes of a factor that is off, are not looked at', async () => {
    const knex = await open()
    for (const table of ['auth_identities', 'auth_sessions', 'auth_recovery_codes']) await knex.schema.dropTable(table)
    expect(keysOf(await checkTables(knex, { identities: false, sessions: false, settings: {} }))).toEqual([])
    expect(keysOf(await checkTables(knex, { identities: false, sessions: false, settings: { mfaEnabled: true } }))).toEqual([
      'error migrations',
    ])
  })

  test('fields of the host: a column that is missing, and one that a social login cannot fill', async () => {
    opened = await database.open()
    const { knex } = opened
    const tables = await createPeople(knex, database.name, { first_name: 'varchar(50) not null' })
    const users = { ...PEOPLE, fields: { firstName: 'first_name', plan: 'plan' } }
    expect(keysOf(await checkTables(knex, { ...tables, users }))).toEqual(['error users.plan'])
    await knex.raw('alter table people add column plan varchar(9)')
    expect(keysOf(await checkTables(knex, { ...tables, users }))).toEqual([])
    const withProviders = { ...tables, users, settings: { oauthEnabled: true } }
    expect(keysOf(await checkTables(knex, withProviders))).toEqual(['error users.first_name'])
    const filled = { ...users, insertDefaults: () => ({ first_name: 'New' }) }
    expect(keysOf(await checkTables(knex, { ...withProviders, users: filled }))).toEqual([])
  })

  test('a column of roles is text, and may be as short as the roles', async () => {
    opened = await database.open()
    const { knex } = opened
    const tables = await createPeople(knex, database.name, { role: "varchar(10) not null default 'member'" })
    const users = { ...PEOPLE, columns: { ...PEOPLE.columns, isAdmin: { column: 'role', admin: 'admin', others: 'member' } } }
    expect(keysOf(await checkTables(knex, { ...tables, users }))).toEqual(['warning users.registered_on:index'])
  })

  test.each([
    { ids: 'integer', instants: 'epoch_ms' },
    { ids: 'text', instants: 'iso' },
  ] as const)('tables under other names, with $ids keys and $instants instants, have no error', async (kinds) => {
    opened = await database.open()
    const tables = await createRenamedTables(opened.knex, database.name, kinds)
    expect(keysOf(await checkTables(opened.knex, tables)).filter((key) => key.startsWith('error'))).toEqual([])
  })
})
