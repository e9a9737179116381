import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthTables } from '../../src'
import { addUser } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, repeat, startPair } from '../support/two-processes'
import type { Task } from './races-child'

for (const database of await databases()) {
  describe(`administrators in two processes on one ${database.name} database`, { timeout: raceTimeout(90_000) }, () => {
    let opened: OpenDatabase
    let pair: ProcessPair<Task, 'done'>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const activeAdmins = async (): Promise<string[]> =>
      (await opened.knex('auth_users').where({ is_active: true, is_admin: true }).select('id')).map(({ id }) => id)

    async function race(one: Task['verb'], other: Task['verb'], standBy: number): Promise<{ outcomes: unknown[]; left: string[] }> {
      await opened.knex('auth_users').update({ is_admin: false })
      const [a, b] = [await addUser(opened.knex, { isAdmin: true }), await addUser(opened.knex, { isAdmin: true })]
      for (let index = 0; index < standBy; index++) await addUser(opened.knex, { isAdmin: true })
      const answers = await pair.race({ verb: one, by: a.id, whom: b.id }, { verb: other, by: b.id, whom: a.id })
      const outcomes = answers.map((answer) => (answer === 'done' ? answer : answer.error))
      return { outcomes, left: (await activeAdmins()).filter((id) => id === a.id || id === b.id) }
    }

    test('of the last two, who remove each other at once, one stays', async () => {
      await repeat(async (round) => {
        const { outcomes, left } = await race(round % 2 ? 'demote' : 'deactivate', round % 3 ? 'demote' : 'deactivate', 0)
        expect(outcomes.toSorted()).toEqual(['CONFLICT', 'done'])
        expect(left).toHaveLength(1)
      }, 20)
    })

    test('of two among several, the one who was removed first removes nobody any more', async () => {
      await repeat(async (round) => {
        const { outcomes, left } = await race(round % 2 ? 'demote' : 'deactivate', 'demote', 2)
        expect(outcomes.toSorted()).toEqual(['FORBIDDEN', 'done'])
        expect(left).toHaveLength(1)
      }, 20)
    })
  })
}
