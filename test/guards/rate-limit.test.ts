import express, { type Express, type Request } from 'express'
import { describe, expect, test, vi } from 'vitest'
import {
  ConfigurationError,
  type CounterStore,
  createAuthTables,
  knexCounters,
  memoryCounters,
  type RateLimitOptions,
  rateLimit,
} from '../../src'
import { databases } from '../support/databases'
import { type RawAnswer, type RawRequest, sendRaw } from '../support/send-raw'

function hostWith(options?: RateLimitOptions, prepare: (app: Express) => void = () => undefined): Express {
  const app = express()
  prepare(app)
  app.use(rateLimit(options))
  app.use((_req, res) => void res.json({}))
  return app
}

const get = (app: Express, headers: RawRequest['headers'] = {}, path = '/') => sendRaw(app, { method: 'GET', path, headers })

async function statuses(app: Express, times: number, headers?: RawRequest['headers']): Promise<number[]> {
  const answers: number[] = []
  for (let time = 0; time < times; time++) answers.push((await get(app, headers)).status)
  return answers
}

const budgetOf = ({ headers }: RawAnswer) =>
  ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after'].map((name) => headers[name])

describe('a limit', () => {
  test('R-135 is 60 in 60 seconds for one client, told in headers; past it 429 with one and the same number of seconds', async () => {
    let milliseconds = 0
    const app = hostWith({ counters: memoryCounters({ now: () => milliseconds }) })

    expect(budgetOf(await get(app))).toEqual(['60', '59', '60', undefined])
    expect(await statuses(app, 58)).toEqual(Array(58).fill(200))
    milliseconds = 17_500
    expect(budgetOf(await get(app))).toEqual(['60', '0', '43', undefined])
    const refused = await get(app, { 'Accept-Language': 'pt-BR' })
    expect(budgetOf(refused)).toEqual(['60', '0', '43', '43'])
    expect([refused.status, refused.body]).toEqual([
      429,
      { detail: 'Muitas requisições. Aguarde.', code: 'TOO_MANY_REQUESTS', details: { retry_after_seconds: 43 } },
    ])
    milliseconds = 59_999
    expect(budgetOf(await get(app))).toEqual(['60', '0', '1', '1'])
    milliseconds = 60_000
    expect(budgetOf(await get(app))).toEqual(['60', '59', '60', undefined])
  })

  test('R-130 is not overshot by a burst', async () => {
    const app = hostWith({ limit: 7 })
    const answers = await Promise.all(Array.from({ length: 60 }, () => get(app)))

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(7)
  })

  test('R-133 is per client: an IPv6 network is one, a mapped address is the IPv4 one, and nobody chooses an address', async () => {
    const proxied = (app: Express) => app.set('trust proxy', 'loopback')
    const from = (address: string) => ({ 'X-Forwarded-For': address })
    const behindProxy = hostWith({ limit: 2 }, proxied)

    for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9']) expect((await get(behindProxy, from(address))).status).toBe(200)
    expect((await get(behindProxy, from('2001:db8:1:2:3:4:5:6'))).status).toBe(429)
    expect((await get(behindProxy, from('2001:db8:1:3::1'))).status).toBe(200)
    for (const address of ['192.0.2.7', '::ffff:192.0.2.7']) expect((await get(behindProxy, from(address))).status).toBe(200)
    expect((await get(behindProxy, from('::ffff:c000:207'))).status).toBe(429)

    const crowd = hostWith({ limit: 2 }, proxied)
    const fromHost = (host: number) => get(crowd, from(`2001:db8:1:${host.toString(16)}::1`))
    for (let host = 0; host < 20; host++) expect((await fromHost(host)).status).toBe(200)
    const refused = await fromHost(20)
    expect([refused.status, refused.headers['ratelimit-remaining'], refused.headers['retry-after']]).toEqual([429, '0', '60'])
    expect((await get(crowd, from('2001:db8:2::1'))).status).toBe(200)
    const named = hostWith({ limit: 1, key: () => '2001:db8:1:2::/64' })
    expect([(await get(named)).status, (await get(named)).status], 'a key of the host is no network').toEqual([200, 429])

    const alone = hostWith({ limit: 2 })
    for (const [address, status] of [
      ['192.0.2.1', 200],
      ['192.0.2.2', 200],
      ['192.0.2.3', 429],
    ] as const)
      expect((await get(alone, from(address))).status).toBe(status)
  })

  test('R-134 no flood of other keys gives a key at its limit another window', async () => {
    const counters = memoryCounters({ maxKeys: 20 })
    const app = hostWith({ limit: 2, counters, key: (req) => String(req.headers['x-key']) })

    expect(await statuses(app, 3, { 'X-Key': 'victim' })).toEqual([200, 200, 429])
    for (let other = 0; other < 60; other++) await get(app, { 'X-Key': `other ${other}` })
    expect((await get(app, { 'X-Key': 'victim' })).status).toBe(429)
  })

  test('R-137 sits on the route, however its path is written', async () => {
    const app = express().get('/reports', rateLimit({ limit: 3 }), (_req, res) => void res.json({}))
    const answers = []
    for (const path of ['/reports', '/REPORTS', '/reports/', '/Reports?x=1']) answers.push((await get(app, {}, path)).status)

    expect(answers).toEqual([200, 200, 200, 429])
  })
})

describe('whose requests are counted', () => {
  test('key says who; those it does not name share one budget; one that throws lets nobody through', async () => {
    const app = hostWith({ limit: 1, key: (req) => req.get('x-key') as string }) // a host's function, which forgets the anonymous
    expect(await statuses(app, 2, { 'X-Key': 'a' })).toEqual([200, 429])
    expect(await statuses(app, 1, { 'X-Key': 'b' })).toEqual([200])
    expect(await statuses(app, 1, { 'X-Key': 'unknown' })).toEqual([200])
    expect([...(await statuses(app, 1)), ...(await statuses(app, 1, { 'X-Key': '' }))]).toEqual([200, 429])

    const log = vi.spyOn(console, 'error').mockReturnValue()
    const failing = hostWith({
      key: () => {
        throw new Error('no session')
      },
    })
    expect((await get(failing)).body).toMatchObject({ code: 'INTERNAL_ERROR', details: {} })
    expect(log).toHaveBeenCalledOnce()
    log.mockRestore()
  })

  test('exempt is neither counted nor refused; what is not true, such as a promise, exempts nobody', async () => {
    const app = hostWith({ limit: 1, exempt: (req) => req.path === '/health' })
    for (let time = 0; time < 3; time++)
      expect(budgetOf(await get(app, {}, '/health'))).toEqual([undefined, undefined, undefined, undefined])
    expect(await statuses(app, 2)).toEqual([200, 429])
    expect((await get(app, {}, '/health')).status).toBe(200)

    const mistaken = hostWith({ limit: 1, exempt: (async () => false) as unknown as (req: Request) => boolean })
    expect(await statuses(mistaken, 2)).toEqual([200, 429])
  })

  test('two limits are two budgets, also over one store, unless they are of one size and name', async () => {
    const apart = express().use(rateLimit({ limit: 2 }), rateLimit({ limit: 2 }), (_req, res) => void res.json({}))
    expect(await statuses(apart, 3)).toEqual([200, 200, 429])

    const counters = memoryCounters()
    const [one, same, larger, named] = [{ limit: 2 }, { limit: 2 }, { limit: 3 }, { limit: 2, name: 'uploads' }].map((options) =>
      hostWith({ ...options, counters }),
    ) as [Express, Express, Express, Express] // four of four
    expect([...(await statuses(one, 1)), ...(await statuses(same, 1)), ...(await statuses(one, 1))]).toEqual([200, 200, 429])
    expect([...(await statuses(larger, 1)), ...(await statuses(named, 1))]).toEqual([200, 200])
  })
})

describe('a store that processes share', () => {
  test('one budget in two processes’ limits, counted in the database', async () => {
    const [database] = await databases()
    const opened = await database?.open({ memory: true })
    if (!opened) throw new Error('no database answers')
    await createAuthTables(opened.knex)
    const [here, there] = [1, 2].map(() => hostWith({ limit: 3, counters: knexCounters(opened.knex) })) as [Express, Express] // two of two

    expect([...(await statuses(here, 2)), ...(await statuses(there, 2)), ...(await statuses(here, 1))]).toEqual([200, 200, 200, 429, 429])
    const keys = await opened.knex('auth_counters').select()
    expect(keys).toHaveLength(1)
    expect(JSON.stringify(keys)).not.toContain('127.0.0.1')
    await opened.close()
  })

  test('R-136 one that is down, hangs or answers nonsense never means unlimited', async () => {
    const log = vi.spyOn(console, 'error').mockReturnValue()
    const store = (increment: () => Promise<unknown>) =>
      ({ increment, decrement: async () => undefined, reset: async () => undefined }) as CounterStore // which may be anything
    const stores = [
      store(() => Promise.reject(new Error('ECONNREFUSED'))),
      store(() => new Promise(() => undefined)),
      store(async () => ({ count: Number.NaN, resetSeconds: 1 })),
    ]
    for (const counters of stores) expect(await statuses(hostWith({ limit: 2, counters }), 3)).toEqual([200, 200, 429])
    log.mockRestore()
  })
})

test('an option that is not what it has to be is refused when the limit is made', () => {
  const wrong: [options: unknown, sentence: RegExp][] = [
    ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '60', null].map((limit): [unknown, RegExp] => [{ limit }, /limit must be/]),
    ...[0, 1.5, '60', 31_536_001].map((windowSeconds): [unknown, RegExp] => [{ windowSeconds }, /windowSeconds must be/]),
    [{ counters: {} }, /counters must be a CounterStore/],
    [{ key: 'ip' }, /key must be a function/],
    [{ exempt: true }, /exempt must be a function/],
    [{ name: 1 }, /name must be text/],
    [{ max: 5 }, /unknown option "max"/],
    [null, /takes an object/],
  ]
  for (const [options, sentence] of wrong) {
    expect(() => rateLimit(options as RateLimitOptions), JSON.stringify(options)).toThrow(ConfigurationError)
    expect(() => rateLimit(options as RateLimitOptions)).toThrow(sentence)
  }
})
