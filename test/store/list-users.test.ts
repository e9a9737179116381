import { afterEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { newUser } from './contract'

for (const database of (await databases()).filter(({ name }) => name !== 'sqlite')) {
  describe(`a users table of the host whose instants are finer than a Date, on ${database.name}`, () => {
    let opened: OpenDatabase | undefined
    afterEach(() => opened?.close())

    test('is listed page by page, every account once', async () => {
      opened = await database.open()
      const { knex } = opened
      await createAuthTables(knex)
      const type = database.name === 'postgres' ? 'alter column created_at type timestamptz(6)' : 'modify created_at datetime(6) not null'
      await knex.raw(`alter table auth_users ${type}`)
      const { users } = createKnexStore({ knex })
      const made: string[] = []
      for (let index = 0; index < 6; index++) {
        const { id } = await users.insert(newUser())
        // Two of each microsecond, all within one millisecond.
        await knex('auth_users')
          .where({ id })
          .update({ created_at: `2026-03-29 01:30:00.98700${index >> 1}${database.name === 'postgres' ? 'Z' : ''}` })
        made.push(id)
      }
      const seen: string[] = []
      for (let after: string | null = null, page = 0; page < 10; page++) {
        const { users: found, next } = await users.list({ filters: [], after, limit: 1 })
        seen.push(...found.map(({ id }) => id))
        after = next
        if (after === null) break
      }
      const pairs = [made.slice(0, 2), made.slice(2, 4), made.slice(4)]
      expect(seen).toEqual(pairs.flatMap((pair) => pair.toSorted()))
    })
  })
}

describe.each(await databases())('24.7: filters among many users on $name', (database) => {
  let opened: OpenDatabase | undefined
  afterEach(() => opened?.close())

  test('startswith finds what begins with the value byte for byte, at the ends of the alphabet too', async () => {
    opened = await database.open()
    const { knex } = opened
    await createAuthTables(knex)
    const { users } = createKnexStore({ knex })
    const names = ['', 'a', 'ab', 'aB', 'a\ud7ffz', 'a\ue000z', 'a\u{10ffff}z', 'b', '%', '%x', '_', '|', '|%', '\\', '\\%']
    for (const [index, name] of names.entries()) await users.insert(newUser({ name, createdAt: new Date(1_700_000_000_000 + index) }))
    const found = async (value: string) => {
      const page = await users.list({ filters: [{ field: 'name', operator: 'startswith', value }], after: null, limit: 50 })
      return page.users.map(({ name }) => name)
    }
    for (const value of [...names, 'a\u{10ffff}', 'a\ud7ff', 'A', 'zz'])
      expect(await found(value), JSON.stringify(value)).toEqual(names.filter((name) => name.startsWith(value)))
  })

  test('a filtered list is whole rows, in order, page by page, and says where it ends', async () => {
    opened = await database.open()
    const { knex } = opened
    await createAuthTables(knex)
    const { users } = createKnexStore({ knex })
    const made = []
    for (let index = 0; index < 7; index++)
      made.push(await users.insert(newUser({ isAdmin: index !== 3, createdAt: new Date(1_700_000_000_000 - 1000 * index) })))
    const expected = made.filter(({ isAdmin }) => isAdmin).toReversed()
    const pages = []
    for (let after: string | null = null; pages.length < 9; ) {
      const page = await users.list({ filters: [{ field: 'isAdmin', operator: 'eq', value: true }], after, limit: 2 })
      pages.push(page.users)
      after = page.next
      if (after === null) break
    }
    expect(pages).toEqual([expected.slice(0, 2), expected.slice(2, 4), expected.slice(4)])
    const none = { filters: [{ field: 'email', operator: 'eq', value: 'nobody@example.test' } as const], after: null, limit: 2 }
    expect(await users.list(none)).toEqual({ users: [], next: null })
  })
})
