import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../src'
import { databases } from './support/databases'

const root = join(import.meta.dirname, '..')

test('docs/store.md names the default columns of the users table, as createAuthTables makes them', async () => {
  const [sqlite] = await databases()
  const database = await sqlite?.open({ memory: true })
  if (!database) throw new Error('no database answers')
  try {
    await createAuthTables(database.knex)
    const columns = Object.keys(await database.knex('auth_users').columnInfo())
    const { users } = createKnexStore({ knex: database.knex })
    const [, chapter = ''] =
      /^### Default columns of the users table$(.*?)^###/ms.exec(readFileSync(join(root, 'docs/store.md'), 'utf8')) ?? []
    const rows = [...chapter.matchAll(/^\| `(\w+)` \| `(\w+)` \|/gm)].map(([, field = '', column = '']) => ({ field, column }))
    expect(rows.map(({ field }) => field).sort()).toEqual([...users.fields].sort())
    expect(rows.map(({ column }) => column).sort()).toEqual(columns.sort())
    for (const { field, column } of rows) expect(column.replaceAll('_', '')).toBe(field.toLowerCase())
  } finally {
    await database.close()
  }
})
