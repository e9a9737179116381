import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, type CounterStore, redisCounters } from '../../src'
import { LoginThrottledError } from '../../src/core/errors'
import { defaultDeadlineMs, restMs, withLocalFallback } from '../../src/rate-limits/local-fallback'
import { attempt, clear } from '../../src/rate-limits/rate-limiter'
import { client, manyClients, password, statuses, times, wrongPassword } from '../local/many-clients'
import { logTap } from '../support/log-tap'
import { openCounters, patient } from './open-counters'
import { hasRedis, type RedisServer, startRedis } from './redis-server'

const rateLimit = { attempts: 5, windowSeconds: 900 }
const start = manyClients()

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
  /** Without anything that would count in its place. */
  let direct: CounterStore
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
    direct = { ...open.counters, increment }
    counters = withLocalFallback(direct, { logger: logs })
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
    const outcomes = await Promise.allSettled(Array.from({ length: times }, () => attempt(store, rateLimit, key, LoginThrottledError)))
    expect(performance.now() - started).toBeLessThan(5_000) // the clients by themselves wait for ever
    const refusals = outcomes.filter(({ status }) => status === 'rejected')
    expect(refusals.every((refusal) => 'reason' in refusal && refusal.reason instanceof LoginThrottledError)).toBe(true)
    return outcomes.filter(({ status }) => status === 'fulfilled').length
  }

  /** Until a key of nobody else is counted in Redis, and not here. */
  async function untilItCounts(key: string, store = counters): Promise<void> {
    const probe = new Redis(server.port)
    const isCounted = async () => {
      await store.increment(key, 900)
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

  /** A Redis that evicts nothing and has no room left: it reads and deletes, and refuses what could grow. */
  async function fillMemory(): Promise<{ free(): Promise<void> }> {
    const owner = new Redis(server.port)
    const megabyte = 1024 * 1024
    await owner.config('SET', 'maxmemory', '0')
    // A text of that size would lie in the connection's buffer too, and Redis frees that by itself a second later.
    await owner.setrange('ballast', 8 * megabyte, 'x')
    const used = Number(/used_memory:(\d+)/.exec(await owner.info('memory'))?.[1])
    await owner.config('SET', 'maxmemory-policy', 'noeviction')
    await owner.config('SET', 'maxmemory', String(used - 4 * megabyte))
    await expect(direct.increment('anything', 900)).rejects.toThrow("OOM command not allowed when used memory > 'maxmemory'")
    return {
      async free() {
        await owner.del('ballast')
        owner.disconnect()
      },
    }
  }

  test('F10: out of memory: this process counts, within the budget; with room again, Redis counts by itself', async () => {
    const logged = logs.entries.length
    // Here Redis answers at once, and no lateness of a busy machine may stand in for its refusal.
    const store = withLocalFallback({ ...direct }, { logger: logs, deadlineMs: 10_000 })
    await untilItCounts('before it is full', store)
    expect(await passed('spent before', { store })).toBe(5)
    const memory = await fillMemory()
    asked = 0
    const began = performance.now()
    expect(await passed('full', { store })).toBe(5)
    const first = asked
    let afterwards = 0
    while (performance.now() < began + 2 * restMs + 200) {
      // Logins of others go on, and Redis forgets what it is told to: that is no sign of room.
      await clear(store, rateLimit, 'somebody else')
      afterwards += await passed('full', { store, times: 50 })
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(afterwards).toBe(0)
    expect(await passed('spent before', { store })).toBe(0)
    expect(first).toBe(20)
    expect(asked - first).toBeGreaterThanOrEqual(1) // it is tried now and then
    expect(asked - first).toBeLessThanOrEqual(Math.ceil((performance.now() - began) / restMs))
    expect(logs.entries.length - logged).toBe(1)

    await memory.free()
    await untilItCounts('after it was full', store)
    expect(await passed('full', { store })).toBe(0)
    expect(await passed('spent before', { store })).toBe(0)
    expect(await passed('fresh with room', { store })).toBe(5)
    expect((await direct.increment('fresh with room', 900)).count).toBe(6) // every unit was taken there
    expect(logs.entries.length - logged).toBe(1)
  }, 60_000)

  test('F10: out of memory, over HTTP: of twenty wrong passwords of one client five are looked at, nothing is 5xx, and others get in', async () => {
    const host = await start({ options: { throttle: { counters: { ...direct } } } })
    const [guessedAt, other] = [`ana-${kind}@example.test`, `bob-${kind}@example.test`]
    for (const email of [guessedAt, other]) await host.signUp(email)
    const memory = await fillMemory()
    const answers = statuses(await times(20, () => host.logIn(guessedAt, wrongPassword, client(0))))
    expect(answers.sort()).toEqual([...Array(5).fill(401), ...Array(15).fill(429)])
    expect(host.hasher.verified).toBe(5)
    expect((await host.logIn(other, password, client(20))).status).toBe(200)
    await memory.free()
    await new Promise((resolve) => setTimeout(resolve, restMs))
    expect((await host.logIn(other, password, client(20))).status).toBe(200)
    expect((await host.logIn(guessedAt, password, client(0))).status).toBe(429)
    expect((await host.logIn(guessedAt, password, client(21))).status).toBe(200)
  }, 60_000)
})
