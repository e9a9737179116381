import { afterEach, describe, expect, test } from 'vitest'
import { checkTables, createAuthTables, migrationSource } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'

describe.each(await databases())('the default tables on $name', (database) => {
  let opened: OpenDatabase
  afterEach(() => opened?.close())

  test('made by createAuthTables have no finding', async () => {
    opened = await database.open()
    await createAuthTables(opened.knex)
    expect(await checkTables(opened.knex)).toEqual([])
  })

  test('made by the migrations have no finding', async () => {
    opened = await database.open()
    await opened.knex.migrate.latest({ migrationSource, tableName: 'auth_migrations' })
    expect(await checkTables(opened.knex)).toEqual([])
  })

  test('that are not there are one finding, which names the command', async () => {
    opened = await database.open()
    expect(await checkTables(opened.knex)).toEqual([
      {
        key: 'migrations',
        level: 'error',
        table: '',
        column: null,
        message: expect.stringMatching(/^7 migrations are pending: run `npx doorward migrate up`\./),
        sql: null,
      },
    ])
  })

  test('with an index of a later version pending are a warning, and other faults of the same table keep their statement', async () => {
    opened = await database.open()
    const { knex } = opened
    await createAuthTables(knex)
    await knex.schema.alterTable('auth_user_tokens', (table) => table.dropIndex([], 'auth_user_tokens_ended'))
    const [pending, ...others] = await checkTables(knex)
    expect([pending?.level, pending?.message, others]).toEqual(['warning', expect.stringMatching(/^1 migration is pending: run /), []])

    await knex.schema.alterTable('auth_user_tokens', (table) => table.dropColumn('payload'))
    const findings = await checkTables(knex)
    expect(findings.map(({ key }) => key).toSorted()).toEqual(['migrations', 'userTokens.payload'])
    expect(findings.find(({ key }) => key === 'userTokens.payload')?.sql).toMatch(/^alter table/)
  })

  test('are pending only where they are needed and not yours', async () => {
    opened = await database.open()
    const { knex } = opened
    await createAuthTables(knex)
    await knex.schema.dropTable('auth_passkeys')
    expect(await checkTables(knex)).toEqual([])
    expect((await checkTables(knex, { sessions: { table: 'devices' } })).map(({ key }) => key)).toEqual(['sessions'])
  })
})
