import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthTables } from '../../src'
import { newAddress } from '../local/people'
import { addUser, someTime } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, startPair } from '../support/two-processes'
import type { SharedStore } from '../throttle/open-counters'
import { hasRedis, startRedis } from '../throttle/redis-server'
import type { Outcome, Task } from './guesses-child'

for (const [place, database] of (await databases()).entries()) {
  describe(`1,000 guesses from 50 clients and two processes, on ${database.name}`, { timeout: raceTimeout(120_000) }, () => {
    let opened: OpenDatabase
    let pair: ProcessPair<Task, Outcome>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      pair = await startPair(join(import.meta.dirname, 'guesses-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    async function guessed(counters: SharedStore | null): Promise<{ compared: number; tries: number; sent: number }> {
      const { email } = await addUser(opened.knex, { email: newAddress(), emailVerifiedAt: someTime })
      const half = { counters, email, clients: 25, guesses: 20 }
      const outcomes = (await pair.race({ ...half, from: 1 }, { ...half, from: 101 })).map((outcome) => {
        if ('error' in outcome) throw new Error(outcome.error)
        return outcome
      })
      for (const { statuses } of outcomes)
        expect(Object.keys(statuses).filter((status) => status !== '401' && status !== '429')).toEqual([])
      expect(outcomes.reduce((sum, { statuses }) => sum + Object.values(statuses).reduce((one, other) => one + other, 0), 0)).toBe(1_000)
      const rows = await opened.knex('auth_email_logins').where({ email })
      return {
        compared: outcomes.reduce((sum, outcome) => sum + outcome.compared, 0),
        tries: rows.reduce((sum, { tries }) => sum + tries, 0),
        sent: rows.length,
      }
    }

    /** Each code is compared five times, by however many at once; and what is mailed is bounded, too. */
    function holds({ compared, tries, sent }: { compared: number; tries: number; sent: number }, mostSent = 5): void {
      expect(compared).toBe(tries)
      expect(compared).toBeGreaterThan(0)
      expect(compared).toBeLessThanOrEqual(5 * sent)
      expect(sent).toBeLessThanOrEqual(mostSent)
    }

    test('with counters in the database, five tries of each mail are compared', async () => {
      holds(await guessed({ kind: 'knex', config: opened.config ?? {} }))
    })

    if (place > 0) return // what counts is no matter of the database

    test('with counters of each process, five tries of each mail are compared', async () => {
      holds(await guessed(null), 2 * 5)
    })

    if (!hasRedis()) return
    test('with counters in Redis, five tries of each mail are compared', async () => {
      const redis = await startRedis()
      try {
        holds(await guessed({ kind: 'ioredis', port: redis.port }))
      } finally {
        await redis.close()
      }
    })
  })
}
