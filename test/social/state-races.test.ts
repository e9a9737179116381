import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthTables } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import type { SharedStore } from '../throttle/open-counters'
import { hasRedis, type RedisServer, startRedis } from '../throttle/redis-server'
import type { Answer, Attempt, Task } from './state-races-child'

/** Pairs of each kind in every run; DOORWARD_RACE_ROUNDS says otherwise. */
const pairs = 40

interface Race {
  readonly name: string
  /** Null: each process counts in its own memory, so only one process can race with itself. */
  counters(opened: OpenDatabase): SharedStore | null
}

const known = await databases()
const withRedis = hasRedis()
let redis: RedisServer | undefined
beforeAll(async () => {
  if (withRedis) redis = await startRedis()
})
afterAll(() => redis?.close())

const inKnex: Race = { name: 'knex', counters: ({ config }) => ({ kind: 'knex', config: config ?? {} }) }
const inRedis: Race = { name: 'Redis', counters: () => ({ kind: 'ioredis', port: redis?.port ?? 0 }) }
const inMemory: Race = { name: 'memory', counters: () => null }

for (const [index, database] of known.entries()) {
  // Which database keeps the accounts makes no difference to a counter store that is elsewhere.
  const races = index === 0 ? [inMemory, inKnex, ...(withRedis ? [inRedis] : [])] : [inKnex]
  describe.each(races)(
    `two copies of one callback, counted by $name, accounts in ${database.name}`,
    { timeout: raceTimeout(60_000) },
    (race) => {
      let opened: OpenDatabase
      let pair: ProcessPair<Task, Answer>
      let counters: SharedStore | null

      beforeAll(async () => {
        opened = await database.open()
        await createAuthTables(opened.knex)
        pair = await startPair(join(import.meta.dirname, 'state-races-child.ts'), opened)
        counters = race.counters(opened)
        await pair.race({ verb: 'open', counters }, { verb: 'open', counters })
        outcomesOf(await pair.ask({ verb: 'callBack', attempt: await begin(), copies: 1 })) // the account is there before the races
      }, raceTimeout(60_000))
      afterAll(async () => {
        await pair?.stop()
        await opened?.close()
      })

      async function begin(): Promise<Attempt> {
        const answer = await pair.ask({ verb: 'begin' })
        if ('error' in answer || !answer.attempt) throw new Error(JSON.stringify(answer))
        return answer.attempt
      }

      test('that arrive at one process at once: exactly one gets in', async () => {
        await repeat(async () => {
          const outcomes = outcomesOf(await pair.ask({ verb: 'callBack', attempt: await begin(), copies: 2 }))
          expect(outcomes.sort()).toEqual([200, 401])
        }, pairs)
      })

      test('an id_token in hand that comes to one process twice at once: exactly one gets in', async () => {
        await repeat(async () => {
          const outcomes = outcomesOf(await pair.ask({ verb: 'bring', idToken: newIdToken(), copies: 2 }))
          expect(outcomes.sort()).toEqual([200, 401])
        }, pairs)
      })

      // Two processes that share no counters share no states either.
      if (race === inMemory) return
      test('that arrive at two processes at once: exactly one gets in', async () => {
        await repeat(async () => {
          const copy: Task = { verb: 'callBack', attempt: await begin(), copies: 1 }
          const outcomes = (await pair.race(copy, copy)).flatMap(outcomesOf)
          expect(outcomes.sort()).toEqual([200, 401])
        }, pairs)
      })

      test('an id_token in hand that comes to two processes at once: exactly one gets in', async () => {
        await repeat(async () => {
          const copy: Task = { verb: 'bring', idToken: newIdToken(), copies: 1 }
          const outcomes = (await pair.race(copy, copy)).flatMap(outcomesOf)
          expect(outcomes.sort()).toEqual([200, 401])
        }, pairs)
      })
    },
  )
}

/** The provider of the race takes any. */
function newIdToken(): string {
  return `header.${randomUUID()}.signature`
}

function outcomesOf(report: Report<Answer>): number[] {
  if ('error' in report) throw new Error(report.error)
  return report.outcomes
}
