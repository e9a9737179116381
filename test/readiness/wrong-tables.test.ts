import { afterEach, describe, expect, test } from 'vitest'
import { checkTables, type HostTables } from '../../src'
import { type Database, databases, type OpenDatabase } from '../support/databases'
import { createPeople, keysOf, PEOPLE, WRONG_TABLES } from './wrong-tables'

let opened: OpenDatabase
afterEach(() => opened?.close())

async function open(database: Database) {
  opened = await database.open()
  return opened.knex
}

describe.each(await databases())("an app's own users on $name", (database) => {
  test('that are right have no finding', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name)
    expect(await checkTables(knex, tables)).toEqual([])
  })

  const here = WRONG_TABLES.filter(({ changes }) => database.name in changes)
  test.each(here)('$title: one finding that says what to do', async ({ changes, users, finding, says, mends }) => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name, changes[database.name])
    const options: HostTables = { ...tables, ...(users && { users }) }

    const findings = await checkTables(knex, options)

    // A key of another kind is one in every table that refers to it.
    expect(findings.filter(({ table }) => table === 'people')).toEqual(
      [
        {
          ...finding,
          table: 'people',
          message: expect.stringContaining(says),
          ...(finding.level === 'warning' && { fails: expect.stringMatching(/^[A-Z].*\.$/) }),
          sql: mends.includes(database.name) ? expect.any(String) : expect.anything(),
        },
      ].map((wanted) =>
        mends.includes(database.name) ? wanted : { ...wanted, sql: findings.find(({ key }) => key === finding.key)?.sql ?? null },
      ),
    )
    expect(findings[0]?.message).toMatch(/See docs\/troubleshooting\.md#[a-z-]+$/)
    if (!mends.includes(database.name)) return
    for (const { sql } of findings) if (sql !== null) await knex.raw(sql)
    expect(await checkTables(knex, options)).toEqual([])
  })

  test('the statements that mend one column twice do not undo each other', async () => {
    const knex = await open(database)
    if (database.name !== 'mariadb') return // whose MODIFY repeats the whole column
    const mail = 'varchar(255) character set utf8mb4 collate utf8mb4_general_ci not null unique'
    const tables = await createPeople(knex, database.name, { mail })
    const findings = await checkTables(knex, tables)

    expect(findings.map(({ key }) => key)).toEqual(['users.mail:width', 'users.mail:collation'])
    for (const { sql } of findings) await knex.raw(sql ?? '')
    expect(await checkTables(knex, tables)).toEqual([])
  })

  test('several faults are listed at once, errors first', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name, {
      full_name: 'varchar(200) not null',
      mail: 'varchar(320)',
      tenant_id: 'varchar(9) not null',
    })
    expect((await checkTables(knex, tables)).map(({ key }) => key)).toEqual([
      'users.tenant_id',
      'users.mail:unique',
      'users.full_name:not-null',
    ])
  })

  test('`ignore` turns findings off, by the key they print or by the name of the table', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name, { mail: 'varchar(320)', tenant_id: 'varchar(9) not null' })
    expect(await checkTables(knex, { ...tables, ignore: ['users.tenant_id', 'people.mail:unique'] })).toEqual([])
  })

  test('columns that insertDefaults fills, and those with a default of their own, are no fault', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name, { tenant_id: 'varchar(9) not null', plan: "varchar(9) not null default 'free'" })
    const users = { ...PEOPLE, insertDefaults: () => ({ tenant_id: 'main' }) }
    expect(await checkTables(knex, { ...tables, users })).toEqual([])
  })

  test('an insertDefaults that throws outside of a request is a warning, and hides nothing else', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name, { mail: 'varchar(320)', tenant_id: 'varchar(9) not null' })
    const insertDefaults = () => {
      throw new Error('no request')
    }
    const found = await checkTables(knex, { ...tables, users: { ...PEOPLE, insertDefaults } })
    expect(keysOf(found)).toEqual(['error users.mail:unique', 'warning users:insertDefaults'])
  })

  test('a table that is not there is named with its option, and never with createAuthTables()', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name)
    const [finding, ...others] = await checkTables(knex, { ...tables, users: { ...PEOPLE, table: 'peple' } })
    expect(finding).toMatchObject({
      key: 'users',
      level: 'error',
      table: 'peple',
      column: null,
      message: expect.stringContaining('`users.table`'),
    })
    expect(finding?.message).not.toContain('createAuthTables')
    expect(others).toEqual([])
  })

  test('an address with upper-case letters is counted, and the statement mends it', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name)
    await addPeople(knex, ['Ana@Example.test', 'BO@example.test', 'cy@example.test'])
    const [finding] = await checkTables(knex, tables)
    expect(finding).toMatchObject({
      key: 'users.mail:lower-case',
      level: 'warning',
      column: 'mail',
      message: expect.stringMatching(/^2 addresses have upper-case/),
    })
    expect(JSON.stringify(finding).toLowerCase()).not.toContain('ana@')
    await knex.raw(finding?.sql ?? '')
    expect(await checkTables(knex, tables)).toEqual([])
  })

  test('linking by verified email over addresses that are all unverified is a warning', async () => {
    const knex = await open(database)
    const type = { sqlite: 'integer', postgres: 'timestamptz', mariadb: 'datetime(3)' }[database.name]
    const users = { ...PEOPLE, columns: { ...PEOPLE.columns, emailVerifiedAt: 'verified_on' } }
    const tables = await createPeople(knex, database.name, { verified_on: type }, { users })
    await addPeople(knex, ['ana@example.test', 'bo@example.test'])
    const settings = { oauthLinkByVerifiedEmail: true }
    expect(keysOf(await checkTables(knex, tables))).toEqual([])
    expect(keysOf(await checkTables(knex, { ...tables, settings }))).toEqual(['warning users.verified_on:unverified'])
    await knex('people')
      .update({ verified_on: database.name === 'sqlite' ? 1 : '2024-01-01 00:00:00' })
      .where({ mail: 'bo@example.test' })
    expect(keysOf(await checkTables(knex, { ...tables, settings }))).toEqual([])
  })

  test('a view is one warning: nobody looks behind it', async () => {
    const knex = await open(database)
    const tables = await createPeople(knex, database.name)
    await knex.raw('create view everybody as select person_id, mail from people')
    expect(keysOf(await checkTables(knex, { ...tables, users: { ...PEOPLE, table: 'everybody' } }))).toEqual(['warning users:view'])
  })

  test('more columns in the unique rule are no unique rule on the address', async () => {
    const knex = await open(database)
    const tables = await createPeople(
      knex,
      database.name,
      { mail: 'varchar(320) not null', tenant: "varchar(9) not null default ''" },
      { rest: ', unique (tenant, mail)' },
    )
    expect(keysOf(await checkTables(knex, tables))).toEqual(['error users.mail:unique'])
  })
})

async function addPeople(knex: OpenDatabase['knex'], addresses: readonly string[]): Promise<void> {
  const { client } = knex.client.config as { client: string }
  const at = client === 'better-sqlite3' ? 1_700_000_000_000 : '2023-11-14 22:13:20'
  for (const mail of addresses) await knex('people').insert({ mail, pw_digest: 'x', enabled: true, registered_on: at, changed_on: at })
}
