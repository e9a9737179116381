import { afterEach, describe, expect, test } from 'vitest'
import { checkTables, type HostTables } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { createPeople, keysOf, PEOPLE } from './wrong-tables'

let opened: OpenDatabase
afterEach(() => opened?.close())

const all = await databases()

if (!all.some(({ name }) => name === 'mariadb')) test.skip('MariaDB is not reachable, or left out of this suite')

describe.each(all.filter(({ name }) => name === 'mariadb'))("an app's own users on $name", (database) => {
  async function findings(changes: Record<string, string | null>, after: string[] = []) {
    opened = await database.open()
    const tables = await createPeople(opened.knex, database.name, changes)
    for (const statement of after) await opened.knex.raw(statement)
    return keysOf(await checkTables(opened.knex, tables))
  }

  test.each(['tinyint(1) not null', 'tinyint not null', 'bit(1) not null'])('a flag of type %s is one', async (type) => {
    expect(await findings({ enabled: type })).toEqual([])
  })

  test.each(['timestamp null', 'datetime', 'timestamp(6) not null default current_timestamp(6) on update current_timestamp(6)'])(
    'an instant of type %s is one',
    async (type) => {
      expect(await findings({ changed_on: type })).toEqual([])
    },
  )

  test('a unique rule on a generated lower(mail) is one on the address', async () => {
    const columnInLower = [
      'alter table people add column mail_key varchar(320) as (lower(mail)) stored',
      'create unique index mail_key on people (mail_key)',
    ]
    expect(await findings({ mail: 'varchar(320) not null' }, columnInLower)).toEqual([])
  })

  test('a NOT NULL column without a default is filled by the server where its mode is not strict', async () => {
    opened = await database.open()
    const tables = await createPeople(opened.knex, database.name, { tenant_id: 'int not null' })
    expect(keysOf(await checkTables(opened.knex, tables))).toEqual(['error users.tenant_id'])
    const lax = opened.connect({ min: 0, max: 1 })
    await lax.raw("set session sql_mode = ''")
    expect(keysOf(await checkTables(lax, tables))).toEqual([])
  })

  test('a change of a column keeps its collation, its default and what it does by itself', async () => {
    opened = await database.open()
    const { knex } = opened
    const tables = await createPeople(knex, database.name, {
      full_name: "varchar(20) character set latin1 collate latin1_swedish_ci not null default 'it''s me'",
    })
    for (const { sql } of await checkTables(knex, tables)) if (sql) await knex.raw(sql)
    const [[{ 'Create Table': made }]] = await knex.raw('show create table people')
    expect(made).toMatch(/`full_name` \w+(\(\d+\))? CHARACTER SET latin1 COLLATE latin1_swedish_ci\s+DEFAULT 'it''s me'/)
  })

  test('another database of the same server, by its name', async () => {
    opened = await database.open()
    const { knex } = opened
    const tables = await createPeople(knex, database.name, { enabled: 'varchar(3) not null' })
    const [[{ name }]] = await knex.raw('select database() as name')
    const users = { ...PEOPLE, table: `${name}.people` }
    expect(keysOf(await checkTables(knex, { ...tables, users }))).toEqual(['error users.enabled:type'])
  })
})

describe.each(all.filter(({ name }) => name === 'sqlite'))("an app's own users on $name", (database) => {
  async function findings(changes: Record<string, string | null>, after: string[] = [], users: HostTables['users'] = PEOPLE) {
    opened = await database.open({ memory: true })
    await createPeople(opened.knex, database.name, changes)
    for (const statement of after) await opened.knex.raw(statement)
    return keysOf(await checkTables(opened.knex, { users }))
  }

  test.each([
    ['enabled', 'boolean not null', []],
    ['enabled', 'integer not null', []],
    ['enabled', 'numeric not null', []],
    ['enabled', 'text not null', ['error users.enabled:type']],
    ['enabled', 'blob not null', ['error users.enabled:type']],
    ['registered_on', 'datetime not null', []],
    ['registered_on', 'timestamp not null', []],
    ['registered_on', 'text not null', ['error users.registered_on:type']],
    ['full_name', 'string', ['error users.full_name:type']], // numeric affinity: '007' becomes 7
    ['pw_digest', 'varchar(60) not null', []], // no more than a name there
    ['person_id', 'int primary key', ['error users.person_id']], // no rowid: stays null
  ])('%s %s', async (column, type, wanted) => {
    expect(await findings({ [column]: type })).toEqual(wanted)
  })

  test.each([
    ['create unique index mails on people (lower(mail))', []],
    ['create unique index mails on people ( lower("mail") )', []],
    ['create unique index mails on people (mail) where mail is not null', []],
    ['create unique index mails on people (mail) where enabled = 1', ['warning users.mail:unique']],
    ['create unique index mails on people (upper(mail))', ['error users.mail:unique']],
  ])('%s', async (statement, wanted) => {
    expect(await findings({ mail: 'text not null' }, [statement])).toEqual(wanted)
  })

  test('a table in an attached database', async () => {
    opened = await database.open({ memory: true })
    const { knex } = opened
    await knex.raw("attach database ':memory:' as app")
    await createPeople(knex, database.name)
    await knex.raw('create table app.crew as select * from people')
    const findings = await checkTables(knex, { users: { ...PEOPLE, table: 'app.crew' } })
    expect(keysOf(findings)).toContain('error users.mail:unique')
    for (const { sql, table } of findings) if (sql !== null && table === 'app.crew') await knex.raw(sql)
    expect(keysOf(await checkTables(knex, { users: { ...PEOPLE, table: 'app.crew' } }))).not.toContain('error users.mail:unique')
  })
})
