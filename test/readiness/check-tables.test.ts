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

  test('that are not there are one error each', async () => {
    opened = await database.open()
    const findings = await checkTables(opened.knex)
    expect(findings.map(({ key, level }) => `${level} ${key}`)).toEqual(
      ['users', 'userTokens', 'identities', 'sessions', 'recoveryCodes'].map((key) => `error ${key}`),
    )
    expect(findings[0]).toMatchObject({
      table: 'auth_users',
      column: null,
      sql: null,
      message: expect.stringContaining('createAuthTables()'),
    })
  })
})
