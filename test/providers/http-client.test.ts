import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Agent, type Dispatcher, MockAgent } from 'undici'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ConfigurationError } from '../../src/core/errors'
import { createHttpClient, type HttpClient, HttpClientError, type HttpClientOptions } from '../../src/core/http-client'
import { callProvider } from '../../src/providers/provider-request'
import { answer, type FakeProvider, hostileAnswers, startFakeProvider, unreachableUrl } from '../support/fake-provider'

let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

test('answers with status, headers and the body as bytes', async () => {
  provider.on('elsewhere', answer(201, { hello: 'world' }, { 'x-a': 'b' }))
  const response = await createHttpClient()(`${provider.issuer}/x`, { method: 'POST', headers: { 'x-c': 'd' }, body: 'text' })
  expect(response).toMatchObject({ status: 201, headers: { 'x-a': 'b' } })
  expect(response.body).toEqual(Buffer.from('{"hello":"world"}'))
  expect(provider.requests[0]).toMatchObject({ method: 'POST', body: 'text', headers: { 'x-c': 'd', 'accept-encoding': 'identity' } })
})

test('what comes before the answer is not the answer', async () => {
  provider.on('elsewhere', (_request: unknown, response: ServerResponse) => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload', 'content-encoding': 'gzip' })
    response.writeHead(200, { 'x-a': 'b' }).end('the answer')
  })
  const response = await createHttpClient()(`${provider.issuer}/x`)
  expect(response).toMatchObject({ status: 200, headers: { 'x-a': 'b' }, body: Buffer.from('the answer') })
})

test('a redirect is returned, not followed', async () => {
  provider.on('elsewhere', answer(302, '', { location: '/other' }))
  await expect(createHttpClient()(`${provider.issuer}/x`)).resolves.toMatchObject({ status: 302 })
  expect(provider.requests.length).toBe(1)
})

test.each(['gzip', 'br', 'deflate', 'gzip, gzip, gzip'])('content-encoding %s is refused, not decoded', async (encoding) => {
  provider.on('elsewhere', answer(200, 'anything', { 'content-encoding': encoding }))
  await expect(createHttpClient()(`${provider.issuer}/x`)).rejects.toMatchObject({ name: 'HttpClientError', code: 'ENCODED' })
})

test('the body is bounded: 256 KiB, or what the call asks for', async () => {
  const client = createHttpClient()
  provider.on('elsewhere', answer(200, 'x'.repeat(256 * 1024)))
  await expect(client(`${provider.issuer}/x`)).resolves.toMatchObject({ status: 200 })
  provider.on('elsewhere', answer(200, 'x'.repeat(256 * 1024 + 1)))
  await expect(client(`${provider.issuer}/x`)).rejects.toMatchObject({ code: 'TOO_LARGE' })
  await expect(client(`${provider.issuer}/x`, { maxBytes: 512 * 1024 })).resolves.toMatchObject({ status: 200 })
})

test.each(['never answers', 'drips a byte at a time'])(
  'a server that %s is given up after the deadline',
  async (name) => {
    provider.on('elsewhere', hostileAnswers[name] ?? null)
    await expect(createHttpClient({ timeoutMs: 200 })(`${provider.issuer}/x`)).rejects.toMatchObject({ code: 'TIMEOUT' })
  },
  8_000,
) // below the ten seconds a client waits that was told nothing

describe('the caller’s signal', () => {
  afterEach(() => void vi.restoreAllMocks())
  const refusal = (code: string) => expect.objectContaining({ name: 'HttpClientError', code })

  test.each([
    ['never answers', false],
    ['never answers', new Error('enough')],
    ['drips a byte at a time', ''],
  ])(
    'ends a call to a server that %s, whatever its reason (%s)',
    async (name, reason) => {
      provider.on('elsewhere', hostileAnswers[name] ?? null)
      const controller = new AbortController()
      const outcome = createHttpClient()(`${provider.issuer}/x`, { signal: controller.signal }).catch((error: unknown) => error)
      await vi.waitFor(() => expect(provider.requests.length).toBe(1))
      controller.abort(reason)
      expect(await outcome).toEqual(refusal(reason instanceof Error ? 'Error' : 'UNKNOWN'))
    },
    8_000,
  )

  test.each([false, '', undefined])('that was aborted before, for whatever reason (%s), lets nothing be sent', async (reason) => {
    const outcome = createHttpClient()(`${provider.issuer}/x`, { signal: AbortSignal.abort(reason) })
    await expect(outcome).rejects.toEqual(refusal(reason === undefined ? 'AbortError' : 'UNKNOWN'))
    expect(provider.requests.length).toBe(0)
  })

  test('that comes while the call still waits for a connection lets nothing be sent', async () => {
    const dispatcher = new Agent({ connections: 1 })
    const client = createHttpClient({ dispatcher })
    const arrived = new Promise<ServerResponse>((resolve) => provider.on('elsewhere', (_request, response) => resolve(response)))
    const first = client(`${provider.issuer}/x`)
    const response = await arrived
    const controller = new AbortController()
    const second = client(`${provider.issuer}/x`, { signal: controller.signal }).catch((error: unknown) => error)
    controller.abort(new Error('enough'))
    expect(await second).toEqual(refusal('Error'))
    response.end('x')
    await expect(first).resolves.toMatchObject({ status: 200 })
    provider.on('elsewhere', answer(200, 'y'))
    await expect(client(`${provider.issuer}/x`)).resolves.toMatchObject({ body: Buffer.from('y') })
    expect(provider.requests.length).toBe(2)
    await dispatcher.close()
  })

  test('that is a deadline of its own makes it a TIMEOUT', async () => {
    provider.on('elsewhere', hostileAnswers['never answers'] ?? null)
    const outcome = createHttpClient()(`${provider.issuer}/x`, { signal: AbortSignal.timeout(50) })
    await expect(outcome).rejects.toEqual(refusal('TIMEOUT'))
  }, 8_000)

  test.each<[string, () => void]>([
    ['that is answered', () => provider.on('elsewhere', answer(200, 'x'))],
    ['that is answered with nothing', () => provider.on('elsewhere', answer(204, ''))],
    ['whose answer is too large', () => provider.on('elsewhere', answer(200, 'x'.repeat(300 * 1024)))],
    ['whose answer is encoded', () => provider.on('elsewhere', answer(200, 'x', { 'content-encoding': 'gzip' }))],
    ['that is cut', () => provider.on('elsewhere', (_req: unknown, res: ServerResponse) => void res.destroy())],
  ])('a call %s leaves no listener on it, and no timer', async (_what, arrange) => {
    arrange()
    const [set, clear] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')]
    const { signal } = new AbortController()
    const timeoutMs = 4_321
    await createHttpClient({ timeoutMs })(`${provider.issuer}/x`, { signal }).catch(() => undefined)
    const timers = set.mock.results.filter((_, call) => set.mock.calls[call]?.[1] === timeoutMs).map(({ value }) => value)
    expect(timers.length).toBeGreaterThan(0)
    for (const timer of timers) expect(clear).toHaveBeenCalledWith(timer)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

test('an answer without a body has an empty one', async () => {
  provider.on('elsewhere', answer(204, ''))
  await expect(createHttpClient()(`${provider.issuer}/x`)).resolves.toMatchObject({ status: 204, body: Buffer.alloc(0) })
})

test('an error says neither the URL nor what it held', async () => {
  const url = `${unreachableUrl}?access_token=very-secret`
  const error: unknown = await createHttpClient()(url).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ name: 'HttpClientError', code: 'ECONNREFUSED' })
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error)) + String(error)).not.toMatch(/very-secret|127\.0\.0\.1/)
})

test.each(['not a url', 'ftp://example.com/', 'http://127.0.0.1:1/\u0000'])(
  'the URL %j fails like a provider that is not there',
  async (url) => {
    await expect(createHttpClient()(url)).rejects.toMatchObject({ name: 'HttpClientError' })
  },
)

test('a header with a line break is refused, not sent', async () => {
  const call = createHttpClient()(`${provider.issuer}/x`, { headers: { authorization: 'Bearer a\r\nx-evil: 1' } })
  await expect(call).rejects.toMatchObject({ name: 'HttpClientError' })
  expect(provider.requests).toEqual([])
})

test('at most 50 calls per origin are under way; the next is refused at once, another origin is not', async () => {
  provider.on('elsewhere', () => undefined)
  const client = createHttpClient({ timeoutMs: 1_000 })
  const hanging = Array.from({ length: 50 }, () => client(`${provider.issuer}/x`).catch((reason: unknown) => reason))
  await expect(client(`${provider.issuer}/x`)).rejects.toMatchObject({ code: 'TOO_MANY_IN_FLIGHT' })
  const other = await startFakeProvider()
  await expect(client(other.jwksUri)).resolves.toMatchObject({ status: 200 })
  await other.close()
  await Promise.all(hanging)
  provider.on('elsewhere', null)
  await expect(client(`${provider.issuer}/x`)).resolves.toMatchObject({ status: 404 })
})

test('an answer in single bytes is put together, and an answer that a dispatcher asks for again begins anew', async () => {
  const text = Array.from({ length: 2_500 }, (_, index) => String(index % 10)).join('')
  const inBytes: Dispatcher = Object.assign(new MockAgent(), {
    dispatch(_options: unknown, handler: Dispatcher.DispatchHandler) {
      const controller = { abort() {} } as unknown as Dispatcher.DispatchController // all that is asked of it
      handler.onRequestStart?.(controller, {})
      for (const [status, body] of [
        [500, 'the first'],
        [200, text],
      ] as const) {
        handler.onResponseStart?.(controller, status, {})
        for (const byte of body) handler.onResponseData?.(controller, Buffer.from(byte))
      }
      handler.onResponseEnd?.(controller, {})
      return true
    },
  })
  const { status, body } = await createHttpClient({ dispatcher: inBytes })('https://idp.example/x')
  expect([status, String(body)]).toEqual([200, text])
})

test('a dispatcher that cannot be stopped does not take the process along', async () => {
  const stubborn: Dispatcher = Object.assign(new MockAgent(), {
    dispatch(_options: unknown, handler: Dispatcher.DispatchHandler) {
      const controller = {
        abort() {
          throw new Error('no')
        },
      } as unknown as Dispatcher.DispatchController // all that is asked of it
      handler.onRequestStart?.(controller, {})
      return true
    },
  })
  const call = createHttpClient({ dispatcher: stubborn, timeoutMs: 20 })('https://idp.example/x')
  await expect(call).rejects.toMatchObject({ code: 'TIMEOUT' })
})

test('a tunnel is refused, and its socket closed', async () => {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined).once('data', () => socket.write('HTTP/1.1 200 Connection Established\r\n\r\n'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // it listens on one
  const call = createHttpClient()(`http://127.0.0.1:${port}/`, { method: 'CONNECT' })
  await expect(call).rejects.toMatchObject({ code: 'UPGRADED' })
  await vi.waitFor(() => expect(sockets.every((socket) => socket.readableEnded || socket.destroyed)).toBe(true))
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => server.close(resolve))
})

test('a dispatcher of the host is used instead of the own pool', async () => {
  const dispatcher = new MockAgent()
  dispatcher.disableNetConnect()
  dispatcher.get('https://idp.example').intercept({ path: '/x' }).reply(200, 'from the mock')
  const response = await createHttpClient({ dispatcher })('https://idp.example/x')
  expect(response.body).toEqual(Buffer.from('from the mock'))
  await dispatcher.close()
})

describe('the circuit breaker', () => {
  test('is off by default: the tenth failure is called like the first', async () => {
    provider.on('elsewhere', answer(500, ''))
    const client = createHttpClient()
    for (let call = 0; call < 10; call += 1) await client(`${provider.issuer}/x`)
    expect(provider.requests.length).toBe(10)
  })

  /** The breaker's clock, moved by hand. */
  function breakerClock() {
    let milliseconds = Math.ceil(performance.now()) // whole, so that what is added up is exact
    vi.spyOn(performance, 'now').mockImplementation(() => milliseconds)
    return {
      advance(by: number) {
        milliseconds += by
      },
    }
  }
  afterEach(() => vi.restoreAllMocks())

  test('opens after so many failures in a row, lets one call through later, and closes on success', async () => {
    const clock = breakerClock()
    const client = createHttpClient({ circuitBreaker: { failures: 3, resetAfterMs: 60_000 } })
    const call = () => client(`${provider.issuer}/x`)
    provider.on('elsewhere', answer(404, ''))
    for (let index = 0; index < 5; index += 1) await call()
    provider.on('elsewhere', answer(503, ''))
    for (let index = 0; index < 3; index += 1) await call()
    expect(provider.requests.length).toBe(8)
    await expect(call()).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    clock.advance(59_999)
    await expect(call()).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    expect(provider.requests.length).toBe(8)

    clock.advance(1)
    // Still failing: the one probe opens it again, and nobody else goes with it.
    const outcomes = await Promise.allSettled([call(), call(), call()])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(provider.requests.length).toBe(9)
    clock.advance(59_999)
    await expect(call()).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })

    provider.on('elsewhere', null)
    clock.advance(1)
    await call()
    await expect(call()).resolves.toMatchObject({ status: 404 })
    // Closed is closed: a single failure is called like any other, and so is what follows it.
    provider.on('elsewhere', answer(503, ''))
    await call()
    await expect(call()).resolves.toMatchObject({ status: 503 })
  })

  test('a probe that hangs lets nobody else through before its own deadline is over', async () => {
    const clock = breakerClock()
    const client = createHttpClient({ circuitBreaker: { failures: 1, resetAfterMs: 1 } })
    provider.on('elsewhere', answer(503, ''))
    await client(`${provider.issuer}/x`)
    const arrived = new Promise<ServerResponse>((resolve) => provider.on('elsewhere', (_request, response) => resolve(response)))
    clock.advance(1)
    const probe = client(`${provider.issuer}/x`).catch((error: unknown) => error)
    const response = await arrived
    clock.advance(9_999)
    await expect(client(`${provider.issuer}/x`)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
    response.destroy()
    expect(await probe).toMatchObject({ name: 'HttpClientError' })
  })

  test.each([200, 503])(
    'a call that was under way when it opened, and ends late with %i, neither closes it nor keeps it open',
    async (late) => {
      const clock = breakerClock()
      const client = createHttpClient({ circuitBreaker: { failures: 1, resetAfterMs: 60_000 } })
      const call = () => client(`${provider.issuer}/x`)
      const arrived = new Promise<ServerResponse>((resolve) => provider.on('elsewhere', (_request, response) => resolve(response)))
      const slow = call()
      const response = await arrived
      provider.on('elsewhere', answer(503, ''))
      await call()
      clock.advance(30_000)
      response.writeHead(late).end()
      await slow

      await expect(call()).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
      clock.advance(30_000)
      await expect(call()).resolves.toMatchObject({ status: 503 })
    },
  )

  test('is per origin: one broken provider does not close the others', async () => {
    const client = createHttpClient({ circuitBreaker: { failures: 1, resetAfterMs: 60_000 } })
    await client(unreachableUrl).catch(() => undefined)
    await expect(client(provider.jwksUri)).resolves.toMatchObject({ status: 200 })
  })
})

test.each([
  { timeout: 5 },
  { timeoutMs: 0 },
  { timeoutMs: 10_001 },
  { timeoutMs: Number.NaN },
  { timeoutMs: '10' },
  { circuitBreaker: true },
  { circuitBreaker: null },
  { circuitBreaker: { failures: 0, resetAfterMs: 1 } },
  { circuitBreaker: { failures: 1 } },
  { dispatcher: {} },
  { dispatcher: { dispatch: () => true, interceptors: {} } },
  { dispatcher: null },
])('the options %j are refused', (options) => {
  expect(() => createHttpClient(options as HttpClientOptions)).toThrow(ConfigurationError) // deliberately not what the type says
})

describe('a dispatcher of the host', () => {
  const controller = {} as Dispatcher.DispatchController // it is not asked for anything
  const silent = { dispatch: () => true } as unknown as NonNullable<HttpClientOptions['dispatcher']>
  const client = createHttpClient({ dispatcher: silent, timeoutMs: 1_000 })
  const wrapped: HttpClient = (url, request) => client(url, request)

  test.each([
    {
      what: 'that never answers: a client made here is given up by its own deadline, and there is no other',
      httpClient: client,
      deadlines: 1,
    },
    { what: 'that never answers: what a host wraps around the client is not taken for it', httpClient: wrapped, deadlines: 2 },
  ])('$what', async ({ httpClient, deadlines }) => {
    vi.useFakeTimers()
    try {
      const refused = expect(callProvider(httpClient, 'https://idp.example/token', {})).rejects.toMatchObject({ code: 'TIMEOUT' })
      expect(vi.getTimerCount()).toBe(deadlines)
      await vi.advanceTimersByTimeAsync(1_000)
      await refused
    } finally {
      vi.useRealTimers()
    }
  })

  test('whose error cannot even be asked for its code: nothing of it is passed on', async () => {
    const secret = () => {
      throw new Error('a secret')
    }
    const error = Object.defineProperty(new Error('a secret'), 'code', { get: secret })
    const failing = { dispatch: (_request: unknown, handler: Dispatcher.DispatchHandler) => handler.onResponseError?.(controller, error) }
    const dispatcher = failing as unknown as Dispatcher // as far as it is asked
    const failure: unknown = await callProvider(createHttpClient({ dispatcher }), 'https://idp.example/token', {}).catch((e: unknown) => e)
    expect(failure).toBeInstanceOf(HttpClientError)
    expect(String(failure)).not.toContain('secret')
  })

  test('an address that is none is refused by a code, and without the address', async () => {
    const failure: unknown = await callProvider(client, 'no address, but a secret', {}).catch((error: unknown) => error)
    expect(failure).toMatchObject({ name: 'HttpClientError', code: 'ERR_INVALID_URL' })
    expect(String(failure)).not.toContain('secret')
  })
})

test('a client of the host that never settles is given up after 10 seconds, and told so', async () => {
  vi.useFakeTimers()
  try {
    let signal: AbortSignal | undefined
    const call = callProvider(
      (_url, request) => {
        signal = request?.signal
        return new Promise(() => undefined)
      },
      'https://idp.example/token',
      {},
    )
    const refused = expect(call).rejects.toMatchObject({ code: 'TIMEOUT' })
    await vi.advanceTimersByTimeAsync(9_999)
    expect(signal?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await refused
    expect(signal?.aborted).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})
