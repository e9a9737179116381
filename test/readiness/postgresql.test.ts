import knex, { type Knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import { checkTables, type HostTables } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { createPeople, keysOf, PEOPLE } from './wrong-tables'

const servers = (await databases()).filter(({ name }) => name === 'postgres')

if (servers.length === 0) test.skip('PostgreSQL is not reachable, or left out of this suite')

describe.each(servers)("an app's own tables on $name", (database) => {
  let opened: OpenDatabase
  const others: Knex[] = []
  afterEach(async () => {
    for (const one of others.splice(0)) await one.destroy()
    await opened?.close()
  })

  async function people(changes: Record<string, string | null> = {}) {
    opened = await database.open()
    return { db: opened.knex, tables: await createPeople(opened.knex, database.name, changes) }
  }

  /** Another instance on the same schema. */
  function connect(config: Knex.Config): Knex {
    const other = knex({ ...opened.config, ...config, pool: { min: 0, max: 2 } })
    others.push(other)
    return other
  }

  const plain = { mail: 'varchar(320) not null' }

  test.each([
    ['unique(lower(mail))', 'create unique index on people (lower(mail))', []],
    ['unique(lower(mail::text))', 'create unique index on people (lower(mail::text))', []],
    ['a partial index that leaves out nulls only', 'create unique index on people (mail) where mail is not null', []],
    ['a partial index', 'create unique index on people (mail) where enabled', ['warning users.mail:unique']],
    ['an index that also covers others', 'create unique index on people (mail) include (full_name)', []],
    ['an index that is not unique', 'create index on people (mail)', ['error users.mail:unique']],
    ['another function', 'create unique index on people (upper(mail))', ['error users.mail:unique']],
  ])('%s on the address', async (_title, statement, findings) => {
    const { db, tables } = await people(plain)
    await db.raw(statement)
    expect(keysOf(await checkTables(db, tables))).toEqual(findings)
  })

  test('citext is a good type for an address', async () => {
    opened = await database.open()
    const installed = await opened.knex.raw('create extension if not exists citext').then(
      () => true,
      () => false,
    )
    if (!installed) return console.warn('*** SKIPPED: PostgreSQL has no extension citext ***')
    const tables = await createPeople(opened.knex, database.name, { mail: 'citext not null unique' })
    expect(keysOf(await checkTables(opened.knex, tables))).toEqual([])
  })

  test('a failed CREATE INDEX CONCURRENTLY leaves no rule', async () => {
    const { db, tables } = await people(plain)
    for (const id of [1, 2])
      await db('people').insert({
        person_id: id,
        mail: 'a@example.test',
        pw_digest: 'x',
        enabled: true,
        registered_on: 'now',
        changed_on: 'now',
      })
    await expect(db.raw('create unique index concurrently on people (mail)')).rejects.toThrow()
    expect(keysOf(await checkTables(db, tables))).toEqual(['error users.mail:unique'])
  })

  test('a table in a schema of its own, and one along the search path', async () => {
    const { db } = await people()
    const schema = `${(await db.raw('select current_schema() as name')).rows[0].name}_app`
    await db.raw('create schema ??', [schema])
    try {
      await db.raw(`create table ${schema}.crew (like people including all)`)
      const crew: HostTables = { users: { ...PEOPLE, table: `${schema}.crew` } }
      expect(keysOf(await checkTables(db, crew)).filter((key) => key.includes('users'))).toEqual([])
      await db.raw(`alter table ${schema}.crew drop column enabled`)
      const [finding] = await checkTables(db, crew)
      expect(finding).toMatchObject({ key: 'users.enabled', table: `${schema}.crew` })
      await db.raw(finding?.sql ?? '')
      expect(keysOf(await checkTables(db, crew)).filter((key) => key.includes('users'))).toEqual([])
      const along = connect({ searchPath: [schema, String(schema).replace(/_app$/, '')] })
      expect(keysOf(await checkTables(along, { users: { ...PEOPLE, table: 'crew' } })).filter((key) => key.includes('users'))).toEqual([])
    } finally {
      await db.raw('drop schema ?? cascade', [schema])
    }
  })

  test('a knex that maps names between snake_case and camelCase', async () => {
    const { tables } = await people({ mail: 'varchar(320)', tenant_id: 'varchar(9) not null' })
    const mapped = connect({
      wrapIdentifier: (name, wrap) => wrap(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
      postProcessResponse: (answer: unknown) => camelCased(answer),
    })
    const columns = {
      ...PEOPLE.columns,
      id: 'personId',
      hashedPassword: 'pwDigest',
      createdAt: 'registeredOn',
      updatedAt: 'changedOn',
      name: 'fullName',
    }
    const users = { ...PEOPLE, columns }
    expect(keysOf(await checkTables(mapped, { ...tables, users }))).toEqual(['error users.tenant_id', 'error users.mail:unique'])
    expect(keysOf(await checkTables(mapped, { users: { ...users, insertDefaults: () => ({ tenantId: 'main' }) } }))).toEqual([
      'error users.mail:unique',
    ])
  })

  test('a role that may use a table and not read the schema: one warning, never an error', async () => {
    const { db, tables } = await people()
    const [{ name: schema }] = (await db.raw('select current_schema() as name')).rows
    const role = `${schema}_guest`
    await db.raw(`create role ${role}`)
    try {
      const guest = connect({ pool: { min: 0, max: 1 } })
      await guest.raw(`set role ${role}`)
      const path = { ...tables, users: { ...PEOPLE, table: `${schema}.people` } }
      const found = await checkTables(guest, path)
      expect(found.filter(({ level, key }) => level === 'error' && key === 'users')).toEqual([])
      expect(keysOf(found)).toContain('warning users:unreadable')
    } finally {
      await db.raw(`drop role ${role}`)
    }
  })

  test('a column that a trigger fills is a finding to ignore', async () => {
    const { db, tables } = await people({ tenant_id: 'varchar(9) not null' })
    await db.raw("create function fill() returns trigger language plpgsql as $$ begin new.tenant_id := 'main'; return new; end $$")
    await db.raw('create trigger fill before insert on people for each row execute function fill()')
    expect(keysOf(await checkTables(db, tables))).toEqual(['error users.tenant_id'])
    expect(await checkTables(db, { ...tables, ignore: ['users.tenant_id'] })).toEqual([])
  })

  test('a database that does not exist, a wrong login and a closed port are one finding each', async () => {
    opened = await database.open()
    const base = new URL(process.env.DOORWARD_TEST_PG ?? 'postgres://postgres@127.0.0.1:5432/test')
    const nowhere = new URL(base)
    nowhere.pathname = '/no_such_database'
    const closed = new URL(base)
    closed.port = '1'
    for (const [connection, sentence] of [
      [nowhere.href, 'The database does not exist'],
      [closed.href, 'The database cannot be reached'],
    ] as const) {
      const findings = await checkTables(connect({ client: 'pg', connection }))
      expect(keysOf(findings)).toEqual(['error database'])
      expect(findings[0]?.message).toContain(sentence)
      expect(findings[0]?.message).not.toMatch(/127\.0\.0\.1|no_such_database/)
    }
  })

  test('a partitioned table is looked at like another', async () => {
    const { db } = await people()
    await db.raw(`create table crowd (like people, primary key (person_id)) partition by hash (person_id)`)
    expect(keysOf(await checkTables(db, { users: { ...PEOPLE, table: 'crowd' } })).filter((key) => key.includes('users'))).toEqual([
      'error users.person_id',
      'error users.mail:unique',
    ])
  })

  test('the tables of an app that has text keys and uuid columns mixed up', async () => {
    const { db } = await people({ person_id: 'uuid primary key' })
    expect(keysOf(await checkTables(db, { users: { ...PEOPLE, ids: 'uuid' } })).filter((key) => key.includes('users.'))).toEqual([])
    const findings = await checkTables(db, { users: { ...PEOPLE, ids: 'text' } })
    expect(findings[0]?.message).toContain("`users: { ids: 'uuid' }`")
  })
})

function camelCased(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(camelCased)
  if (typeof answer !== 'object' || answer === null || answer instanceof Date) return answer
  if ('rows' in answer) return { ...answer, rows: camelCased(answer.rows) }
  return Object.fromEntries(
    Object.entries(answer).map(([key, value]) => [key.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase()), value]),
  )
}
