import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import express, { type Express, type RequestHandler } from 'express'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, errorHandler, errors, type IdempotencyOptions, idempotency, type ResponseCache } from '../../src'
import { memoryResponses } from '../../src/guards/idempotency/response-cache'
import { rememberAuth } from '../../src/sessions/current-auth'
import { type RawRequest, sendRaw } from '../support/send-raw'
import { hasRedis, startRedis } from '../throttle/redis-server'

interface HostOptions {
  options?: IdempotencyOptions
  handle?: RequestHandler
  /** Mounted before it; default the JSON parser. */
  before?: RequestHandler[]
  after?: RequestHandler[]
}

/** A host whose handler counts how often it ran, and by default says so. */
function hostWith({ options, handle, before = [express.json()], after = [] }: HostOptions = {}) {
  const host = { app: express(), runs: 0 }
  host.app.set('trust proxy', 'loopback')
  for (const middleware of before) host.app.use(middleware)
  host.app.use(idempotency(options))
  for (const middleware of after) host.app.use(middleware)
  host.app.use((req, res, next) => {
    host.runs++
    if (handle) handle(req, res, next)
    else res.status(201).set('X-Run', String(host.runs)).location(`/orders/${host.runs}`).json({ run: host.runs })
  })
  host.app.use(errorHandler({ logger: { info: () => undefined, warn: () => undefined, error: () => undefined } }))
  return host
}

const key = { 'Idempotency-Key': '8e03978e-40d5-43e8-bc93-6f539c0c8f1b' }
const json = { 'Content-Type': 'application/json' }
const ana = { Authorization: 'Bearer ana' }

const order = (app: Express, headers: RawRequest['headers'] = {}, more: Partial<RawRequest> = {}) =>
  sendRaw(app, { path: '/orders', body: '{"item":1}', ...more, headers: { ...json, ...key, ...ana, ...headers } })

afterEach(() => {
  vi.useRealTimers()
})

describe('a repetition', () => {
  test('gets the first answer again, and says so; the handler runs once', async () => {
    const host = hostWith()
    const first = await order(host.app)
    const second = await order(host.app)

    expect(host.runs).toBe(1)
    expect([first.status, first.text, first.headers['idempotency-replayed']]).toEqual([201, '{"run":1}', undefined])
    expect([second.status, second.text, second.headers['idempotency-replayed']]).toEqual([201, '{"run":1}', 'true'])
    for (const name of ['content-type', 'content-length', 'etag', 'location', 'x-run'])
      expect(second.headers[name], name).toBe(first.headers[name])
  })

  test('GET, HEAD, OPTIONS, and requests without the header, always run', async () => {
    const host = hostWith()
    for (const method of ['GET', 'HEAD', 'OPTIONS']) for (const _time of [1, 2]) await order(host.app, {}, { method })
    for (const _time of [1, 2]) await sendRaw(host.app, { path: '/orders', headers: json, body: '{}' })

    expect(host.runs).toBe(8)
  })

  test('D17 of another method, path, query, host, key or caller is none: nobody gets another’s answer', async () => {
    const host = hostWith()
    const distinct: [headers: RawRequest['headers'], more?: Partial<RawRequest>][] = [
      [{}],
      [{}, { method: 'PATCH' }],
      [{}, { path: '/orders/1' }],
      [{}, { path: '/orders?draft=1' }],
      [{ Host: 'other.example.test' }],
      [{ 'Idempotency-Key': 'another' }],
      [{ Authorization: 'Bearer a' }],
      [{ Authorization: 'Bearer b' }],
      [{ Authorization: 'Basic YTpi' }],
    ]
    for (const [headers, more] of distinct) {
      expect(
        (await order(host.app, { Host: 'app.example.test', ...headers }, more)).headers['idempotency-replayed'],
        JSON.stringify(headers),
      ).toBe(undefined)
    }
    expect(host.runs).toBe(distinct.length)
    for (const [headers, more] of distinct) await order(host.app, { Host: 'app.example.test', ...headers }, more)
    expect(host.runs).toBe(distinct.length)
  })

  test('is found by the user that a guard verified, though the access token was refreshed; other cookies say nothing', async () => {
    const signedIn: RequestHandler = (req, _res, next) => {
      const sub = String(req.get('x-user'))
      rememberAuth(req, { claims: { amr: [], email: '', exp: 0, iat: 0, sub, typ: 'access' }, user: null })
      next()
    }
    const host = hostWith({ before: [express.json(), signedIn] })
    await order(host.app, { 'X-User': 'ann', Authorization: 'Bearer old', Cookie: 'theme=dark' })
    const again = await order(host.app, { 'X-User': 'ann', Authorization: 'Bearer new', Cookie: 'theme=light' })

    expect([host.runs, again.headers['idempotency-replayed']]).toEqual([1, 'true'])
    await order(host.app, { 'X-User': 'bob', Authorization: 'Bearer old' })
    expect(host.runs).toBe(2)
  })

  test('of somebody nobody can name runs again, says that it was not stored, and the log says so once', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    const host = hostWith()
    for (const cookie of ['connect.sid=a', 'connect.sid=a', '']) {
      const { headers, status } = await order(host.app, { Authorization: '', Cookie: cookie })
      expect([status, headers['idempotency-stored'], headers['idempotency-replayed']]).toEqual([201, 'false', undefined])
    }
    const lines = warn.mock.calls.map(([message]) => String(message))
    warn.mockRestore()

    expect(host.runs).toBe(3)
    expect(lines).toEqual([expect.stringMatching(/cannot tell who sent.*pass `caller`.*#idempotency-without-a-caller$/)])
  })

  test('of an answer that set a cookie gets it without the cookie', async () => {
    const handlers: RequestHandler[] = [
      (_req, res) => void res.cookie('session', 'x').json({ run: 1 }),
      (_req, res) => void res.writeHead(200, { 'set-cookie': 'session=x' }).end('x'),
      (_req, res) => void res.writeHead(200, ['Set-Cookie', 'session=x']).end('x'),
    ]
    for (const handle of handlers) {
      const host = hostWith({ handle })
      const [first, again] = [await order(host.app), await order(host.app)]
      expect(first.headers['set-cookie']).toHaveLength(1)
      expect([host.runs, again.text, again.headers['set-cookie'], again.headers['idempotency-replayed']]).toEqual([
        1,
        first.text,
        undefined,
        'true',
      ])
    }
  })

  test('is found by the caller’s name where the host says it, and by credentials where it does not', async () => {
    const host = hostWith({ options: { caller: (req) => req.get('x-user') as string } }) // a host's function, which forgets the anonymous
    await order(host.app, { 'X-User': 'ann', Authorization: 'Bearer old' })
    await order(host.app, { 'X-User': 'ann', Authorization: 'Bearer new' })
    expect(host.runs).toBe(1)
    for (const headers of [{ 'X-User': 'bob' }, { Authorization: 'Bearer old' }, { Authorization: 'Bearer new' }])
      await order(host.app, headers)
    expect(host.runs).toBe(4)
  })

  test('with another body is 422, while the first runs and afterwards; an unread body is known by its length and type', async () => {
    const host = hostWith()
    await order(host.app)
    const other = await order(host.app, {}, { body: '{"item":2}' })
    expect([other.status, other.body]).toEqual([
      422,
      {
        detail: 'The request is not valid.',
        code: 'VALIDATION_ERROR',
        details: { errors: [{ path: 'Idempotency-Key', rule: 'used_with_another_body' }] },
      },
    ])
    const unread = hostWith({ before: [], after: [express.json()] })
    await order(unread.app)
    const answers = [{ body: '{"item":10}' }, { headers: { 'Content-Type': 'text/plain' } }].map(({ headers = {}, ...more }) =>
      order(unread.app, headers, more),
    )
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([422, 422])
    expect((await order(unread.app)).headers['idempotency-replayed']).toBe('true')
    expect([host.runs, unread.runs]).toEqual([1, 1])
  })

  test('a key is one header of 1 to 255 visible ASCII characters, else 422 and nothing runs', async () => {
    const host = hostWith()
    for (const value of ['', 'a b', 'é', 'x'.repeat(256), ['a', 'b'], ['a', 'a']]) {
      const answer = await order(host.app, { 'Idempotency-Key': value })
      expect([answer.status, answer.body['code']], JSON.stringify(value)).toEqual([422, 'VALIDATION_ERROR'])
    }
    expect(host.runs).toBe(0)
    for (const value of ['x', 'x'.repeat(255), '"8e03978e-40d5"'])
      expect((await order(host.app, { 'Idempotency-Key': value })).status).toBe(201)
  })

  test('a body nested too deep to compare is 422, not a failure', async () => {
    const host = hostWith({ before: [express.json({ limit: '1mb' })] })
    const body = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`

    // Node 26 can serialize such a body, so there it is compared like any other.
    expect((await order(host.app, {}, { body })).status).toBe(isSerializable(JSON.parse(body)) ? 201 : 422)
  })
})

describe('requests at once', () => {
  test('D17 run once; the others are told to come again, and then get the answer', async () => {
    let finish: () => void = () => undefined
    const finished = new Promise<void>((resolve) => {
      finish = resolve
    })
    const host = hostWith({ handle: (_req, res) => void finished.then(() => res.json({ done: true })) })
    const sent = Array.from({ length: 20 }, () => order(host.app))
    const early = await Promise.race(sent)
    expect([early.status, early.body['code'], early.body['details'], early.headers['retry-after']]).toEqual([
      409,
      'CONFLICT',
      { reason: 'still_running', retry_after_seconds: 1 },
      '1',
    ])
    expect((await order(host.app, {}, { body: '{}' })).status).toBe(422)
    finish()
    const answers = await Promise.all(sent)

    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)])
    expect((await order(host.app)).headers['idempotency-replayed']).toBe('true')
    expect(host.runs).toBe(1)
  })

  test('run once over two processes that share a cache', async () => {
    const cache = memoryResponses()
    const [here, there] = [1, 2].map(() =>
      hostWith({ options: { cache }, handle: (_req, res) => void setImmediate(() => res.json({})) }),
    ) as [Host, Host] // two of two
    await Promise.all(Array.from({ length: 10 }, (_, index) => order(index % 2 ? here.app : there.app)))

    expect(here.runs + there.runs).toBe(1)
  })
})

describe('what is not kept', () => {
  test('D17 failures, answers that ask to be tried again, and more than 1 MiB: the request runs again', async () => {
    const handlers: Record<string, RequestHandler> = {
      'a 500': (_req, res) => void res.status(500).json({}),
      'a thrown error': () => {
        throw new Error('database')
      },
      'our own 503': (_req, _res, next) => next(new errors.ServiceUnavailableError()),
      'a 429': (_req, res) => void res.status(429).json({}),
      'a 408': (_req, res) => void res.status(408).json({}),
      'a 409 with Retry-After': (_req, res) => void res.status(409).set('Retry-After', '5').json({}),
      'more than 1 MiB': (_req, res) => void res.send('x'.repeat(1024 * 1024 + 1)),
      'more than 1 MiB in chunks': (_req, res) => {
        for (let chunk = 0; chunk < 20; chunk++) res.write(Buffer.alloc(64 * 1024))
        res.end()
      },
      'a chunk Node refuses': (_req, res) => {
        res.status(200).end({} as Buffer)
      },
    }
    for (const [what, handle] of Object.entries(handlers)) {
      const host = hostWith({ handle })
      const answers = [await order(host.app), await order(host.app)]

      expect([host.runs, ...answers.map(({ headers }) => headers['idempotency-replayed'])], what).toEqual([2, undefined, undefined])
    }
  })

  test('a refusal of the client’s own making is kept', async () => {
    const host = hostWith({ handle: (_req, res) => void res.status(404).json({ error: 'no such item' }) })
    await order(host.app)

    expect((await order(host.app)).status).toBe(404)
    expect(host.runs).toBe(1)
  })

  test('an answer that is older than ttlSeconds', async () => {
    let milliseconds = 0
    const host = hostWith({ options: { ttlSeconds: 10, cache: memoryResponses({ now: () => milliseconds }) } })
    await order(host.app)
    milliseconds = 9_999
    await order(host.app)
    expect(host.runs).toBe(1)
    milliseconds = 10_000
    await order(host.app)
    expect(host.runs).toBe(2)
  })
})

describe('an answer is kept as it was given', () => {
  const reused = Buffer.alloc(4)
  const handlers: Record<string, RequestHandler> = {
    'res.send of text': (_req, res) => void res.send('olá'),
    'res.send of bytes': (_req, res) => void res.type('image/png').send(Buffer.from([0, 255, 128, 10])),
    'res.json with a status': (_req, res) => void res.status(202).json({ a: ['é', null] }),
    'res.end alone': (_req, res) => void res.end(),
    'res.end with a callback': (_req, res) => void res.status(200).end(() => undefined),
    '204': (_req, res) => void res.status(204).end(),
    'a redirect': (_req, res) => res.redirect(303, '/orders/1'),
    'chunks in several encodings': (_req, res) => {
      res.setHeader('Content-Type', 'text/plain; charset=utf-8')
      res.write('olá ', 'utf8', () => undefined)
      res.write('b2zDoSA=', 'base64')
      res.write(new Uint8Array([65, 66]))
      res.write(Buffer.from('C'))
      res.end('6d6f7265', 'hex')
    },
    latin1: (_req, res) => void res.end('olá', 'latin1'),
    'writeHead with an object': (_req, res) => void res.writeHead(203, 'Fine', { 'X-One': 1, 'X-Many': ['a', 'b'] }).end('x'),
    'writeHead with a list': (_req, res) => void res.writeHead(200, ['X-One', 'a', 'Content-Type', 'text/x']).end('x'),
    'flushHeaders, then a stream whose buffer is used again': (_req, res) => {
      res.setHeader('X-One', 'a')
      res.flushHeaders()
      const [first, ...others] = 'abc'
      const next = (letter: string | undefined): unknown => {
        if (letter === undefined) return res.end()
        reused.fill(letter)
        return res.write(reused, () => next(others.shift()))
      }
      next(first)
    },
    'a pipe': (_req, res) => void Readable.from([Buffer.from('one '), Buffer.from('two')]).pipe(res.type('text/plain')),
    sendFile: (_req, res) => res.sendFile(`${import.meta.dirname}/../tsconfig.json`),
    'what stands there once it has ended': (_req, res) => {
      res.end('whole')
      res.write('more', () => undefined)
    },
  }

  test('status, bytes and headers, however they were written', async () => {
    for (const [what, handle] of Object.entries(handlers)) {
      const host = hostWith({
        handle: (req, res, next) =>
          void handle(
            req,
            res.on('error', () => undefined),
            next,
          ),
      })
      const [first, second] = [await order(host.app), await order(host.app)]

      expect(host.runs, what).toBe(1)
      expect([second.status, second.text, comparable(second.headers)], what).toEqual([first.status, first.text, comparable(first.headers)])
    }
  })

  test.each(['in front of it', 'behind it'])('a middleware %s that rewrites answers does the same to both', async (where) => {
    const shout: RequestHandler = (_req, res, next) => {
      const { end, writeHead } = res
      res.writeHead = function (this: typeof res, ...given: unknown[]) {
        res.removeHeader('Content-Length')
        res.setHeader('Content-Encoding', 'x-shout')
        return (writeHead as (...args: unknown[]) => typeof res).apply(this, given)
      } as typeof writeHead
      res.end = ((chunk: unknown) => {
        res.write(String(chunk).toUpperCase()) // by the method found on res
        return end.call(res, undefined, 'utf8')
      }) as typeof end
      next()
    }
    const host = hostWith({
      handle: (_req, res) => void res.json({ a: 'quiet' }),
      [where === 'behind it' ? 'after' : 'before']: [express.json(), shout],
    })
    const [first, second] = [await order(host.app), await order(host.app)]

    expect([first.text, first.headers['content-encoding']]).toEqual(['{"A":"QUIET"}', 'x-shout'])
    expect([second.text, second.headers['content-encoding'], second.headers['idempotency-replayed']]).toEqual([
      '{"A":"QUIET"}',
      'x-shout',
      'true',
    ])
  })

  test('headers of the middleware in front are each answer’s own', async () => {
    let count = 0
    const counting: RequestHandler = (_req, res, next) => {
      res.setHeader('X-Request', String(++count))
      res.append('Set-Cookie', `seen=${count}`)
      next()
    }
    const host = hostWith({ before: [express.json(), counting] })
    const [first, second] = [await order(host.app), await order(host.app)]

    expect([first, second].map(({ headers }) => [headers['x-request'], headers['set-cookie']])).toEqual([
      ['1', ['seen=1']],
      ['2', ['seen=2']],
    ])
    expect(host.runs).toBe(1)
  })
})

describe('a caller that hangs up', () => {
  test('and a handler that goes on: its answer is there for the next attempt', async () => {
    let finish: () => void = () => undefined
    const host = hostWith({
      handle: (_req, res) => {
        finish = () => void res.json({ late: true })
      },
    })
    await hangUp(host, { complete: true })
    expect((await order(host.app)).status).toBe(409)
    finish()

    expect([(await order(host.app)).body, host.runs]).toEqual([{ late: true }, 1])
  })

  test('and a handler that never answers: after a minute the request may run again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const host = hostWith({
      handle: (_req, res) => {
        if (host.runs > 1) res.json({})
      },
    })
    await hangUp(host, { complete: true })
    vi.advanceTimersByTime(59_000)
    expect((await order(host.app)).status).toBe(409)
    vi.advanceTimersByTime(2_000)

    expect([(await order(host.app)).status, host.runs]).toEqual([200, 2])
  })

  test('before its body was whole: what a parser made of that is not its answer', async () => {
    const host = hostWith({ before: [], after: [express.json()] })
    await hangUp(host, { complete: false })

    expect([(await order(host.app)).status, host.runs]).toEqual([201, 1])
  })

  /** Sends a request and destroys the connection once it has arrived; returns when the host knows. */
  async function hangUp(host: Host, { complete }: { complete: boolean }): Promise<void> {
    let isGone: () => void = () => undefined
    const gone = new Promise<void>((resolve) => {
      isGone = resolve
    })
    let hasArrived: () => void = () => undefined
    const arrived = new Promise<void>((resolve) => {
      hasArrived = resolve
    })
    const server = createServer((req, res) => {
      res.once('close', () => setImmediate(isGone))
      host.app(req, res)
      if (!complete) hasArrived()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo // a TCP server's address is never a string
    const headers = { Host: `127.0.0.1`, ...json, ...key, ...ana, 'Content-Length': '10' }
    const outgoing = request({ host: '127.0.0.1', port, method: 'POST', path: '/orders', headers })
    outgoing.on('error', () => undefined)
    if (complete) outgoing.end('{"item":1}')
    else outgoing.write('{"it')
    if (complete) await vi.waitUntil(() => host.runs === 1, { timeout: 10_000 })
    else await arrived
    outgoing.destroy()
    await gone
    await new Promise((resolve) => server.close(resolve))
  }
})

describe('a cache of the host’s', () => {
  test('that fails, hangs or holds something else is 503, and nothing runs; one that cannot keep an answer loses only that', async () => {
    const log = vi.spyOn(console, 'error').mockReturnValue()
    const broken = async () => {
      throw new Error('redis://user:password@host is down')
    }
    const cacheOf = (claim: ResponseCache['claim']): ResponseCache => ({ claim, set: broken, delete: broken })
    const stored = ['', 'null', '42', '{}', '{"fingerprint":1,"answer":null}', '{"fingerprint":"x"}', '{"fingerprint":"x","answer":{}}']
    for (const claim of [broken, ...stored.map((text) => async () => text)]) {
      const host = hostWith({ options: { cache: cacheOf(claim) } })
      const answer = await order(host.app)

      expect([answer.status, answer.body['code'], answer.headers['retry-after'], host.runs]).toEqual([503, 'SERVICE_UNAVAILABLE', '1', 0])
    }
    const losing = hostWith({ options: { cache: cacheOf(async () => null) } })
    expect((await order(losing.app)).status).toBe(201)
    expect(JSON.stringify(log.mock.calls)).not.toContain('password')
    log.mockRestore()
  })

  test('that hangs is given up after two seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const log = vi.spyOn(console, 'error').mockReturnValue()
    let wasAsked = false
    const never = () => {
      wasAsked = true
      return new Promise<never>(() => undefined)
    }
    const host = hostWith({ options: { cache: { claim: never, set: never, delete: never } } })
    const answer = order(host.app)
    await vi.waitUntil(() => wasAsked, { timeout: 10_000 })
    vi.advanceTimersByTime(2_000)

    expect((await answer).status).toBe(503)
    log.mockRestore()
  })

  test('that claims after those two seconds all the same is told that nothing runs, and the next attempt does', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const log = vi.spyOn(console, 'error').mockReturnValue()
    const cache = memoryResponses()
    let claim = () => {}
    const slow: ResponseCache = {
      ...cache,
      claim: (...asked) =>
        new Promise((resolve) => {
          claim = () => resolve(cache.claim(...asked))
        }),
    }
    const host = hostWith({ options: { cache: slow } })
    const answer = order(host.app)
    await vi.waitUntil(() => String(claim).includes('resolve'), { timeout: 10_000 })
    vi.advanceTimersByTime(2_000)
    expect((await answer).status).toBe(503)
    claim()
    await vi.waitUntil(() => cache.size().entries === 0)

    expect((await order(hostWith({ options: { cache } }).app)).status).toBe(201)
    log.mockRestore()
  })
})

test.runIf(hasRedis())(
  'D17 the cache of docs/middleware.md, over Redis: one run in two processes’ hosts, answers and claims with an end',
  async () => {
    const server = await startRedis()
    const redis = new Redis(server.port)
    const cache: ResponseCache = {
      claim: (key, value, ttlSeconds) => redis.set(`answers:${key}`, value, 'EX', ttlSeconds, 'NX', 'GET'),
      set: async (key, value, ttlSeconds) => void (await redis.set(`answers:${key}`, value, 'EX', ttlSeconds)),
      delete: async (key) => void (await redis.del(`answers:${key}`)),
    }
    const status = { of: 500 }
    const handle: RequestHandler = (_req, res) => void setImmediate(() => res.status(status.of).json({ olá: 1 }))
    const [here, there] = [1, 2].map(() => hostWith({ options: { cache, ttlSeconds: 900 }, handle })) as [Host, Host] // two of two
    const [name] = (await order(here.app).then(() => redis.keys('*'))) as [string?]
    expect(name).toBe(undefined)

    status.of = 200
    const answers = await Promise.all(Array.from({ length: 10 }, (_, index) => order(index % 2 ? here.app : there.app)))
    const runs = here.runs + there.runs
    const again = await order(here.app)
    const [kept = ''] = await redis.keys('answers:*')
    expect([runs, again.body]).toEqual([2, { olá: 1 }])
    expect(answers.map((answer) => answer.status)).toContain(200)
    expect(await redis.ttl(kept)).toBeGreaterThan(600) // the answer's own end; a claim's is 600
    redis.disconnect()
    await server.close()
  },
)

describe('the cache of this process', () => {
  test('is bounded by number and by bytes; the oldest answers make room, what runs never does', async () => {
    const cache = memoryResponses({ maxEntries: 3, maxBytes: 2_000 })
    await cache.claim('running', 'r', 60)
    for (const name of ['a', 'b', 'c']) {
      await cache.claim(name, 'r', 60)
      await cache.set(name, 'answer', 60)
    }
    expect(cache.size().entries).toBe(3)
    expect([await cache.claim('running', 'x', 60), await cache.claim('c', 'x', 60)]).toEqual(['r', 'answer'])
    await cache.set('c', 'x'.repeat(1_500), 60)
    expect([cache.size().entries, cache.size().bytes < 2_000]).toEqual([2, true])
    await cache.set('c', 'x'.repeat(5_000), 60)
    expect(cache.size().entries).toBe(1)
    await Promise.all([cache.claim('d', 'r', 60), cache.claim('e', 'r', 60)])
    await expect(cache.claim('f', 'r', 60)).rejects.toThrow('nothing but requests that are running')
    for (const name of ['running', 'd', 'e']) await cache.delete(name)
    expect(cache.size()).toEqual({ entries: 0, bytes: 0 })
  })

  test('lets expired answers and claims go as others come', async () => {
    let milliseconds = 0
    const cache = memoryResponses({ now: () => milliseconds })
    await cache.claim('a', 'r', 5)
    for (let name = 0; name < 50; name++) await cache.set(`old ${name}`, 'x', 10)
    milliseconds = 5_000
    expect(await cache.claim('a', 'again', 5)).toBe(null)
    milliseconds = 10_000
    await cache.claim('b', 'r', 5)
    expect(cache.size().entries).toBe(1)
  })
})

test('an option that is not what it has to be is refused at once', () => {
  const wrong: [options: unknown, sentence: RegExp][] = [
    ...[0, 1.5, '60', Number.NaN, 31_536_001].map((ttlSeconds): [unknown, RegExp] => [{ ttlSeconds }, /ttlSeconds must be/]),
    [{ cache: { get: () => null } }, /cache must be a ResponseCache/],
    [{ caller: 'sub' }, /caller must be a function/],
    [{ ttl: 5 }, /the nearest known one is ttlSeconds/],
    [null, /takes an object/],
  ]
  for (const [options, sentence] of wrong) {
    expect(() => idempotency(options as IdempotencyOptions), JSON.stringify(options)).toThrow(ConfigurationError)
    expect(() => idempotency(options as IdempotencyOptions)).toThrow(sentence)
  }
})

type Host = ReturnType<typeof hostWith>

/** Without what each sending has of its own. */
function comparable(headers: Record<string, unknown>): Record<string, unknown> {
  const {
    date,
    connection,
    'transfer-encoding': encoding,
    'content-length': length,
    'idempotency-replayed': replayed,
    'keep-alive': alive,
    ...others
  } = headers
  return others
}

function isSerializable(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined
  } catch {
    return false
  }
}
