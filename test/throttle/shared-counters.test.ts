import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CounterStore, createAuthTables, memoryCounters } from '../../src'
import { LoginThrottledError } from '../../src/core/errors'
import { attempt } from '../../src/rate-limits/rate-limiter'
import { databases } from '../support/databases'
import type { Order, Report } from './counters-child'
import { openCounters, patient, type SharedStore } from './open-counters'
import { hasRedis, type RedisServer, startRedis } from './redis-server'

interface UnderTest {
  readonly counters: CounterStore
  /** Null: of this process only. */
  readonly shared: SharedStore | null
  pass(seconds: number): Promise<void>
  close(): Promise<void>
}

interface Kind {
  readonly name: string
  open(): Promise<UnderTest>
}

/** A store whose clock is the test's. */
function withClock(): { now: () => number; pass: UnderTest['pass'] } {
  let at = Date.now()
  const pass = async (seconds: number) => {
    at += seconds * 1000
  }
  return { now: () => at, pass }
}

const memory: Kind = {
  name: 'memory',
  async open() {
    const { now, pass } = withClock()
    return { counters: memoryCounters({ now }), shared: null, pass, close: async () => undefined }
  },
}

const inDatabases = (await databases()).map(
  (database): Kind => ({
    name: `knex on ${database.name}`,
    async open() {
      const opened = await database.open()
      await createAuthTables(opened.knex)
      const shared: SharedStore = { kind: 'knex', config: opened.config ?? {} }
      const { now, pass } = withClock()
      const { counters, close } = await openCounters(shared, now)
      return { counters, shared, pass, close: () => close().then(opened.close) }
    },
  }),
)

let redis: RedisServer
const withRedis = hasRedis()
beforeAll(async () => {
  if (withRedis) redis = await startRedis()
})
afterAll(() => redis?.close())

const inRedis = (['ioredis', 'node-redis'] as const).map(
  (kind): Kind => ({
    name: `Redis through ${kind}`,
    async open() {
      const shared: SharedStore = { kind, port: redis.port, prefix: `${kind}:` }
      return { ...(await openCounters(shared)), shared, pass: (seconds) => delay(seconds * 1000 + 20) }
    },
  }),
)

const kinds = [memory, ...(withRedis ? inRedis : []), ...inDatabases]

const rateLimit = { attempts: 5, windowSeconds: 900 }

async function passed(counters: CounterStore, key: string, times: number): Promise<number> {
  const outcomes = await Promise.allSettled(
    Array.from({ length: times }, () => attempt(patient(counters), rateLimit, key, LoginThrottledError)),
  )
  return outcomes.filter(({ status }) => status === 'fulfilled').length
}

describe.each(kinds)('$name', (kind) => {
  let store: UnderTest
  let counters: CounterStore
  beforeAll(async () => {
    store = await kind.open()
    counters = store.counters
  })
  afterAll(() => store?.close())

  const count = async (key: string, windowSeconds = 900) => (await counters.increment(key, windowSeconds)).count

  test('every unit is taken once: of twenty at once each sees another count', async () => {
    const counts = await Promise.all(Array.from({ length: 20 }, () => count('atomic')))
    expect(counts.sort((one, other) => one - other)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  })

  test('a burst of twenty stays in its budget of five, and refused callers leave no unit behind', async () => {
    expect(await passed(counters, 'burst', 20)).toBe(5)
    expect(await count('burst')).toBe(6)
  })

  test('the window is the one of the first increment: no later one extends or shortens it', async () => {
    expect(await counters.increment('window', 900)).toEqual({ count: 1, resetSeconds: 900 })
    const { resetSeconds } = await counters.increment('window', 31_536_000)
    expect(resetSeconds).toBeGreaterThan(890)
    expect(resetSeconds).toBeLessThanOrEqual(900)
    expect((await counters.increment('window', 1)).resetSeconds).toBeGreaterThan(890)
  })

  test('when it has ended nothing of it is left: a new one begins, of its own length', async () => {
    for (const key of ['ends', 'ends, then a unit comes back']) {
      await counters.increment(key, 1)
      await counters.increment(key, 900)
    }
    await store.pass(1)
    await counters.decrement('ends, then a unit comes back')
    expect(await counters.increment('ends, then a unit comes back', 60)).toEqual({ count: 1, resetSeconds: 60 })
    expect(await counters.increment('ends', 31_536_000)).toEqual({ count: 1, resetSeconds: 31_536_000 })
    expect(await count('ends')).toBe(2)
  })

  test('a decrement gives one unit back, stops at zero, and leaves the window as it is', async () => {
    await counters.increment('down', 900)
    for (let time = 0; time < 3; time++) await counters.decrement('down')
    const { count, resetSeconds } = await counters.increment('down', 31_536_000)
    expect(count).toBe(1)
    expect(resetSeconds).toBeLessThanOrEqual(900)
  })

  test('a decrement opens no window, and lends nothing to the next', async () => {
    await counters.decrement('never')
    expect(await counters.increment('never', 60)).toEqual({ count: 1, resetSeconds: 60 })
  })

  test('a reset forgets the window, of this key only', async () => {
    await Promise.all([count('reset'), count('other')])
    await counters.reset('reset')
    await counters.reset('unknown')
    expect(await counters.increment('reset', 60)).toEqual({ count: 1, resetSeconds: 60 })
    expect(await count('other')).toBe(2)
  })

  test('keys are compared byte for byte, whatever they hold and however long they are', async () => {
    const long = 'k'.repeat(10_000)
    const plain = ['', 'A', 'a', 'a ', ' a', "a'; drop table auth_counters; --", 'a?', '{a}', 'a:b', 'k'.repeat(255), 'k'.repeat(256)]
    const odd = ['ä', 'a\u0308', 'ß', 'ss', '😀', 'a\0', 'a\0b', '\ud800', '\ud801', '\ufffd', long, `${long}.`]
    const keys = [...plain, ...odd]
    for (const key of keys) expect(await count(key), JSON.stringify(key)).toBe(1)
    for (const key of keys) expect(await count(key), JSON.stringify(key)).toBe(2)
  })
})

describe('two processes', { timeout: 60_000 }, () => {
  let children: readonly ChildProcess[]
  beforeAll(async () => {
    const start = () => fork(join(import.meta.dirname, 'counters-child.ts'), { execArgv: ['--import', 'tsx'] })
    children = [start(), start()]
    await Promise.all(children.map((child) => once(child, 'message')))
  }, 60_000)
  afterAll(() => Promise.all(children.map(stop)))

  test.each(kinds.filter(({ name }) => name !== 'memory'))('on $name burst into one budget', async (kind) => {
    const { shared, close } = await kind.open()
    if (!shared) throw new Error('this store is of one process only')
    await Promise.all(children.map((child) => tell(child, { store: shared })))
    for (let round = 0; round < 10; round++) {
      const startAt = performance.timeOrigin + performance.now() + 10
      const burst: Order = { startAt, key: `two processes ${round}`, attempts: 5, times: 10 }
      const reports = await Promise.all(children.map((child) => tell(child, burst)))
      expect(reports.reduce((total, report) => total + (report === 'ready' ? 0 : report.passed), 0)).toBe(5)
    }
    await close()
  })
})

async function tell(child: ChildProcess, order: Order): Promise<Report> {
  const waiting = new AbortController()
  const report = once(child, 'message', { signal: waiting.signal })
  const death = once(child, 'exit', { signal: waiting.signal }).then(() => Promise.reject(new Error('the other process ended')))
  child.send(order)
  try {
    const [answer] = await Promise.race([report, death])
    return answer as Report // the only thing counters-child.ts sends
  } finally {
    waiting.abort()
    await Promise.allSettled([report, death])
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exit = once(child, 'exit')
  child.disconnect()
  await exit
}
