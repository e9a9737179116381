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
