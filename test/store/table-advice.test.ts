import { afterEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, type HostTables } from '../../src'
import { createPeople, PEOPLE } from '../readiness/wrong-tables'
import { databases, type OpenDatabase } from '../support/databases'
import { newUser } from './contract'

describe.each(await databases())('an error of $name about a table', (database) => {
  let opened: OpenDatabase
  afterEach(() => opened?.close())

  async function errorOf(changes: Record<string, string | null>, users: HostTables['users'] = PEOPLE) {
    opened = await database.open()
    await createPeople(opened.knex, database.name, changes)
    const store = createKnexStore({ knex: opened.knex, users })
    const error: unknown = await store.users.insert(newUser()).catch((thrown: unknown) => thrown)
    const { message } = error as Error
    expect(message).not.toMatch(/createAuthTables|@|insert into/i)
    return message
  }

  test('of the host names the table and the option', async () => {
    expect(await errorOf({}, { ...PEOPLE, table: 'peple' })).toMatch(
      /^The database failed at users\.insert \(\w+\): there is no table peple; name yours in `users\.table` of createKnexStore\(\)$/,
    )
  })

  test('names the column that is missing, and the option that maps it', async () => {
    expect(await errorOf({ enabled: null })).toMatch(
      /: the table people has no column enabled; add the column, or name your column in `users\.columns\.isActive` of createKnexStore\(\)$/,
    )
  })

  test('names the column that nobody fills', async () => {
    expect(await errorOf({ tenant_id: 'int not null' })).toMatch(
      /: people\.tenant_id is NOT NULL and nothing fills it; return a value from `users\.insertDefaults` of createKnexStore\(\)$/,
    )
  })

  test('of ours says to make them', async () => {
    opened = await database.open()
    await createAuthTables(opened.knex)
    await opened.knex.schema.dropTable('auth_user_tokens')
    const { userTokens } = createKnexStore({ knex: opened.knex })
    await expect(userTokens.find('x'.repeat(64))).rejects.toThrow(
      /: there is no table auth_user_tokens; run createAuthTables\(\) or the migrations$/,
    )
  })
})

test('every column that must not be false is named at once, with those that may be', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('SQLite is always there')
  const { knex, close } = await sqlite.open({ memory: true })
  const columns = { isActive: false, updatedAt: false, name: false } as const
  expect(() => createKnexStore({ knex, users: { columns } })).toThrow(
    /^createKnexStore\(\): users\.columns\.isActive, users\.columns\.updatedAt cannot be false: .* Of users only isAdmin, .* may be false\.$/,
  )
  await close()
})
