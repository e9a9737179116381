import type { Agent, Dispatcher } from 'undici'
import { ConfigurationError } from './errors'
import { withOwnMessage } from './logger'

/**
 * The purpose of a call. Anyone can cause `token` calls (by posting a token) and `authorize` calls (pushed requests). A `callback` call
 * needs a valid state. Each purpose has its own connection limit and circuit breaker, so that a flood of `token` or `authorize` calls
 * cannot block `callback` calls.
 */
export type CallPurpose = 'token' | 'authorize' | 'callback' | 'discovery' | 'keys'

const purposes = 5

export interface HttpRequest {
  /** Default GET. */
  method?: string
  headers?: Record<string, string>
  body?: string
  /** Maximum size of the body in bytes. Default 256 KiB. */
  maxBytes?: number
  /** Aborts the call when the caller stops waiting. */
  signal?: AbortSignal
  /** The purpose of the call. The number of calls to an origin is limited per purpose. */
  purpose?: CallPurpose
}

export interface HttpResponse {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The body of the response. The caller decodes the body. Clients of `createHttpClient` return a Buffer. */
  body: string | Uint8Array
}

/**
 * Sends a request to an identity provider. A host's own client must not follow redirects and should obey `signal`. doorward itself limits
 * the time and the size of that client's responses. A client of `createHttpClient` enforces both limits itself.
 */
export type HttpClient = (url: string, request?: HttpRequest) => Promise<HttpResponse>

export interface HttpClientOptions {
  /** The longest time from the call to the last byte of the body, in milliseconds: 1 to 10,000. Default 10,000. */
  timeoutMs?: number
  /** Per origin and purpose: after `failures` failures in a row, fails at once for `resetAfterMs`, then tries one call. Default false. */
  circuitBreaker?: false | { failures: number; resetAfterMs: number }
  /** A dispatcher of undici 7 or 8 instead of the client's own connection pool, for example a proxy. */
  dispatcher?: Dispatcher
}

/** Providers usually respond with a few KiB. Requests for key sets pass a higher limit. */
export const DEFAULT_MAX_BYTES = 256 * 1024
export const MAX_TIMEOUT_MS = 10_000
const MAX_IN_FLIGHT = 50

/** The message leaves out the URL and the HTTP library's message, because both can contain tokens. `code` is the system's, for logs. */
export class HttpClientError extends Error {
  override readonly name = 'HttpClientError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
    withOwnMessage(this)
  }
}

/**
 * Creates a client with a single pool of kept-alive connections. The client follows no redirects and returns a 3xx unchanged. The client
 * decompresses nothing and rejects any content-encoding. At most 50 calls per origin and purpose run at once.
 *
 * @throws ConfigurationError for an option out of range
 */
export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  const { timeoutMs, circuitBreaker, dispatcher } = checkOptions(options)
  const origins = new Map<string, OriginState>()
  const client: HttpClient = async (url, call = {}) => {
    const target = targetOf(url)
    const origin = originState(origins, `${call.purpose ?? ''} ${target.origin}`)
    refuseWhenBusyOrBroken(origin, circuitBreaker)
    origin.inFlight += 1
    const { era } = origin
    try {
      const response = await send(dispatcher, target, call, timeoutMs)
      countOutcome(origin, circuitBreaker, { era, isSuccess: response.status < 500 })
      return response
    } catch (error) {
      countOutcome(origin, circuitBreaker, { era, isSuccess: false })
      throw error instanceof HttpClientError ? error : new HttpClientError(codeOf(error), noAnswer)
    } finally {
      origin.inFlight -= 1
    }
  }
  bounded.add(client)
  return client
}

const noAnswer = 'The provider did not answer: check the address of the endpoint, and that this server can reach it.'
const bounded = new WeakSet<HttpClient>()

/** Only clients of `createHttpClient` enforce both limits themselves. A host's wrapper around one does not count. */
export function isBounded(client: HttpClient): boolean {
  return bounded.has(client)
}

function targetOf(url: string): URL {
  try {
    return new URL(url)
  } catch {
    throw new HttpClientError('ERR_INVALID_URL', noAnswer)
  }
}

interface OriginState {
  inFlight: number
  failuresInARow: number
  /** Of the monotonic clock. Before this time, calls fail at once. 0: the circuit breaker is closed. */
  openUntil: number
  /** Begins when the breaker opens and when a probe starts. Results of calls from an earlier era are ignored. */
  era: number
}

function originState(origins: Map<string, OriginState>, key: string): OriginState {
  const state = origins.get(key) ?? { inFlight: 0, failuresInARow: 0, openUntil: 0, era: 0 }
  origins.set(key, state)
  return state
}

function refuseWhenBusyOrBroken(origin: OriginState, breaker: Breaker): void {
  if (origin.inFlight >= MAX_IN_FLIGHT) throw new HttpClientError('TOO_MANY_IN_FLIGHT', 'Too many calls to this provider are running.')
  if (!breaker || origin.openUntil === 0) return
  if (performance.now() < origin.openUntil)
    throw new HttpClientError('CIRCUIT_OPEN', 'The provider failed repeatedly, so doorward did not call it.')
  // This call is the probe. Until the probe succeeds, other calls fail at once, at most until `openUntil`.
  origin.era += 1
  origin.openUntil = performance.now() + Math.max(breaker.resetAfterMs, MAX_TIMEOUT_MS)
}

function countOutcome(origin: OriginState, breaker: Breaker, { era, isSuccess }: { era: number; isSuccess: boolean }): void {
  if (era !== origin.era) return
  origin.failuresInARow = isSuccess ? 0 : origin.failuresInARow + 1
  if (isSuccess) origin.openUntil = 0
  else if (breaker && origin.failuresInARow >= breaker.failures) {
    origin.openUntil = performance.now() + breaker.resetAfterMs
    origin.era += 1
  }
}

async function send(
  dispatcher: Dispatcher,
  { origin, pathname, search }: URL,
  call: HttpRequest,
  timeoutMs: number,
): Promise<HttpResponse> {
  if (call.signal?.aborted) throw givenUp(call.signal)
  const request = {
    origin,
    path: pathname + search,
    method: (call.method ?? 'GET') as Dispatcher.HttpMethod, // undici rejects a text that is not a method
    headers: { 'accept-encoding': 'identity', ...call.headers },
    body: call.body ?? null,
  }
  const { answer, giveUp } = exchange(dispatcher, request, call.maxBytes ?? DEFAULT_MAX_BYTES)
  const release = giveUpWith(giveUp, timeoutMs, call.signal)
  try {
    return await answer
  } finally {
    release()
  }
}

/** undici's `request` takes about twice as long, because it makes a stream of every response and follows an AbortSignal. */
function exchange(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions, maxBytes: number) {
  let giveUp: (reason: HttpClientError) => void = () => undefined
  const answer = new Promise<HttpResponse>((resolve, reject) => {
    let [status, headers, size]: [number, HttpResponse['headers'], number] = [0, {}, 0]
    let chunks: Buffer[] = []
    let under: Dispatcher.DispatchController | null = null
    let givenUp: HttpClientError | null = null
    giveUp = (reason) => {
      givenUp ??= reason
      reject(givenUp)
      stop(under)
    }
    const stop = (controller: Dispatcher.DispatchController | null) => {
      try {
        if (givenUp) controller?.abort(givenUp)
      } catch {
        // The host's dispatcher threw, and the caller no longer waits. Without this catch, an error in a timer would end the process.
      }
    }
    dispatcher.dispatch(request, {
      onRequestStart(controller) {
        under = controller
        stop(controller) // if the call was aborted while it waited for a connection
      },
      onRequestUpgrade(_controller, _statusCode, _fields, socket) {
        socket.destroy()
        reject(new HttpClientError('UPGRADED', 'The provider answered with another protocol.')) // a response to CONNECT
      },
      onResponseStart(_controller, statusCode, fields) {
        if (statusCode < 200) return // an interim response (RFC 9110 section 15.2)
        ;[status, headers, size, chunks] = [statusCode, fields, 0, []] // reset, because a dispatcher can send the request again
        if (isEncoded(fields))
          giveUp(new HttpClientError('ENCODED', 'The answer of the provider has an encoding that doorward did not ask for.'))
      },
      onResponseData(controller, bytes) {
        if (givenUp) return stop(controller)
        size += bytes.length
        if (size > maxBytes) giveUp(new HttpClientError('TOO_LARGE', 'The answer of the provider is too large.'))
        // Each chunk takes about 200 bytes more than its data, so a response in single bytes would take megabytes.
        else if (chunks.push(bytes) >= 1_000) chunks = [Buffer.concat(chunks)]
      },
      onResponseEnd: () => resolve({ status, headers, body: Buffer.concat(chunks) }),
      onResponseError: (_controller, error) => reject(error), // also if the connection closes too early
    })
  })
  return { answer, giveUp }
}

/** A few KiB of gzip can become gigabytes, so we request `identity` and reject any other encoding. */
function isEncoded({ 'content-encoding': encoding }: HttpResponse['headers']): boolean {
  return encoding !== undefined && encoding !== '' && encoding !== 'identity'
}

/** Only this timer limits a slow body, because undici's restart with every byte. It does not keep the process alive. */
function giveUpWith(giveUp: (reason: HttpClientError) => void, timeoutMs: number, outer: AbortSignal | undefined): () => void {
  const late = () => giveUp(new HttpClientError('TIMEOUT', 'The provider did not answer in time.'))
  const timer = setTimeout(late, timeoutMs).unref()
  const follow = () => outer && giveUp(givenUp(outer))
  outer?.addEventListener('abort', follow, { once: true })
  return () => {
    clearTimeout(timer)
    outer?.removeEventListener('abort', follow)
  }
}

/** Our own error, because undici does not stop for a caller's reason such as `false`. */
function givenUp({ reason }: AbortSignal): HttpClientError {
  return new HttpClientError(codeOf(reason), 'The caller stopped waiting for the provider.')
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN'
  if (error.name === 'TimeoutError') return 'TIMEOUT'
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' ? code : error.name
}

type Breaker = false | { failures: number; resetAfterMs: number }

function checkOptions(options: HttpClientOptions): { timeoutMs: number; circuitBreaker: Breaker; dispatcher: Dispatcher } {
  const { timeoutMs = MAX_TIMEOUT_MS, circuitBreaker = false, dispatcher, ...unknown } = options
  const [extra] = Object.keys(unknown)
  if (extra !== undefined) throw new ConfigurationError(`createHttpClient: unknown option ${extra}.`)
  if (!isWhole(timeoutMs, MAX_TIMEOUT_MS))
    throw new ConfigurationError('createHttpClient: timeoutMs must be a whole number from 1 to 10000.')
  if (circuitBreaker !== false && !(isWhole(circuitBreaker?.failures, 1e6) && isWhole(circuitBreaker?.resetAfterMs, 86_400_000))) {
    throw new ConfigurationError(
      'createHttpClient: circuitBreaker must be false or { failures, resetAfterMs }, both positive whole numbers.',
    )
  }
  // A dispatcher of undici 6 has other events. Only such a dispatcher has `interceptors`.
  if (dispatcher !== undefined && (typeof dispatcher?.dispatch !== 'function' || 'interceptors' in dispatcher))
    throw new ConfigurationError('createHttpClient: dispatcher must be a dispatcher of undici 7 or 8.')
  return { timeoutMs, circuitBreaker, dispatcher: dispatcher ?? newPool(timeoutMs) }
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most
}

/** Loads undici only for a host with a provider. Reading `Response` first makes the host's `fetch` keep Node's own agent. */
function newPool(timeoutMs: number): Agent {
  void globalThis.Response
  const undici = require('undici') as typeof import('undici') // `require` returns `any`
  return new undici.Agent({
    connections: (purposes + 1) * MAX_IN_FLIGHT, // plus one, for a host's own calls, which have no purpose
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
}
