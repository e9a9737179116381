import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, type CounterStore, redisCounters } from '../../src'
import { LoginThrottledError } from '../../src/errors'
import { defaultDeadlineMs, restMs, withLocalFallback } from '../../src/throttle/local-fallback'
import { attempt } from '../../src/throttle/throttle'
import { logTap } from '../support/log-tap'
import { openCounters, patient } from './open-counters'
import { hasRedis, type RedisServer, startRedis } from './redis-server'

const budget = { attempts: 5, windowSeconds: 900 }

describe('what redisCounters takes', () => {
  test.each([
    ['nothing', undefined],
    ['an address', 'redis://127.0.0.1'],
    ['a class', Redis],
    ['a client of another kind', { eval: async () => 1 }],
    ['no client', { evalSha: async () => 1 }],
  ])('%s is refused', (_case, given) => {
    expect(() => redisCounters(given as unknown as Redis)).toThrow(ConfigurationError) // wrong on purpose
  })

  test('a prefix that is no text is refused', () => {
    const options = { prefix: 1 } as unknown as { prefix: string } // wrong on purpose
    expect(() => redisCounters(createClient(), options)).toThrow('prefix')
  })
})

describe.runIf(hasRedis())('a Redis of our own', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.close())

  test("its keys carry the prefix and an end; the client's own keyPrefix stands in front", async () => {
    const [plain, prefixed] = [new Redis(server.port), new Redis(server.port, { keyPrefix: 'app:' })]
    await redisCounters(plain).increment('a', 900)
    await redisCounters(prefixed, { prefix: 'auth:' }).increment('b', 900)
    expect((await plain.keys('*')).sort()).toEqual(['app:auth:b', 'doorward:a'])
    expect(await plain.pttl('doorward:a')).toBeGreaterThan(890_000)
    await plain.flushall()
    plain.disconnect()
    prefixed.disconnect()
  })

  test('a key that lost its end gets one again: nobody is locked out for ever', async () => {
    const client = new Redis(server.port)
    await client.set('doorward:a', 7)
    expect(await redisCounters(client).increment('a', 900)).toEqual({ count: 8, resetSeconds: 900 })
    expect(await client.pttl('doorward:a')).toBeGreaterThan(890_000)
    await client.flushall()
    client.disconnect()
  })

  test('a client that hands numbers back as text counts as well', async () => {
    const client = new Redis(server.port, { stringNumbers: true })
    expect(await redisCounters(client).increment('text', 900)).toEqual({ count: 1, resetSeconds: 900 })
    client.disconnect()
  })

  test('when Redis refuses, the verb rejects', async () => {
    const client = new Redis(server.port)
    await client.lpush('doorward:list', 'x')
    await expect(redisCounters(client).increment('list', 900)).rejects.toThrow('WRONGTYPE')
    client.disconnect()
  })
})

// Both clients as they are without any option: what they cannot send they queue, and wait.
describe.runIf(hasRedis()).each(['ioredis', 'node-redis'] as const)('an outage of Redis behind %s', (kind) => {
  let server: RedisServer
  /** With the deadline as it is shipped. */
  let counters: CounterStore
  /** Where the machine of the test, busy as it may be, must not look like an outage. */
  let unhurried: CounterStore
  let asked = 0
  let close: () => Promise<void>
  const logs = logTap()
  beforeAll(async () => {
    server = await startRedis()
    const open = await openCounters({ kind, port: server.port })
    const increment: CounterStore['increment'] = (...unit) => {
      asked++
      return open.counters.increment(...unit)
    }
    counters = withLocalFallback({ ...open.counters, increment }, { logger: logs })
    unhurried = patient(open.counters)
    close = open.close
  })
  afterAll(async () => {
    await close?.()
    await server?.close()
  })

  /** How many of a burst got through. That all are answered within the deadline is timed with a clock of its own in throttle.test.ts. */
  async function passed(key: string, { times = 20, store = counters } = {}): Promise<number> {
    const started = performance.now()
    const outcomes = await Promise.allSettled(Array.from({ length: times }, () => attempt(store, budget, key, LoginThrottledError)))
    expect(performance.now() - started).toBeLessThan(5_000) // the clients by themselves wait for ever
    const refusals = outcomes.filter(({ status }) => status === 'rejected')
    expect(refusals.every((refusal) => 'reason' in refusal && refusal.reason instanceof LoginThrottledError)).toBe(true)
    return outcomes.filter(({ status }) => status === 'fulfilled').length
  }

  /** Until a key of nobody else is counted in Redis, and not here. */
  async function untilItCounts(key: string): Promise<void> {
    const probe = new Redis(server.port)
    const isCounted = async () => {
      await counters.increment(key, 900)
      expect(await probe.exists(`doorward:${key}`)).toBe(1)
    }
    await vi.waitFor(isCounted, { timeout: 30_000, interval: 100 })
    probe.disconnect()
  }

  test('F10: killed: this process counts, in time and within the budget; back again, Redis counts by itself', async () => {
    expect(await passed('before', { store: unhurried })).toBe(5)
    await server.kill()
    expect(await passed('during')).toBe(5)
    expect(await passed('during')).toBe(0)
    await server.restart()
    await untilItCounts('after the kill')
    // Redis has forgotten everything; what was counted here has not been.
    expect(await passed('during')).toBe(0)
    expect(await passed('fresh', { store: unhurried })).toBe(5)
  }, 60_000)

  test('F10: frozen, it accepts and stays silent: in time and within the budget; thawed, Redis counts by itself', async () => {
    await untilItCounts('before the freeze')
    const logged = logs.entries.length
    server.freeze()
    asked = 0
    expect(await passed('frozen')).toBe(5)
    const first = asked
    const began = performance.now()
    const until = began + restMs + defaultDeadlineMs
    let afterwards = 0
    while (performance.now() < until) {
      afterwards += await passed('frozen', { times: 50 })
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(afterwards).toBe(0)
    expect(first).toBe(20)
    // One command a second, and not one for each of the hundreds of callers, waits in the client's memory.
    expect(asked - first).toBeLessThanOrEqual(Math.ceil((performance.now() - began) / restMs))
    expect(logs.entries.length - logged).toBe(1)
    server.thaw()
    await untilItCounts('after the freeze')
    expect(await passed('frozen')).toBe(0)
    expect(await passed('fresh after the freeze', { store: unhurried })).toBe(5)
  }, 60_000)
})
