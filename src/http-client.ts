import type { Agent, Dispatcher } from 'undici'
import { ConfigurationError } from './errors'
import { withOwnMessage } from './logger'

/**
 * What a call is for. Anybody can cause the calls about a `token` in hand, and `authorize` ones, which push a request; a `callback` had to show its state. So calls of one purpose
 * never take the places of another's, nor open its circuit breaker.
 */
export type CallPurpose = 'token' | 'authorize' | 'callback' | 'discovery' | 'keys'

const purposes = 5

export interface HttpRequest {
  /** Default GET. */
  method?: string
  headers?: Record<string, string>
  body?: string
  /** The most bytes of body the caller takes; default 256 KiB. */
  maxBytes?: number
  /** Aborted when the caller stops waiting. */
  signal?: AbortSignal
  /** Calls to one origin are limited for each purpose. */
  purpose?: CallPurpose
}

export interface HttpResponse {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** Decoded by the caller; clients made here answer with a Buffer. */
  body: string | Uint8Array
}

/**
 * How the library speaks to identity providers. A client of the host's own must not follow redirects and should heed
 * `signal`; its deadline and byte cap are held on the caller's side. One of `createHttpClient` keeps its own deadline.
 */
export type HttpClient = (url: string, request?: HttpRequest) => Promise<HttpResponse>

export interface HttpClientOptions {
  /** From the call to the last byte of the body; 1 to 10,000, default 10,000. */
  timeoutMs?: number
  /** Per origin and purpose: after so many failures in a row calls are refused at once, then one is let through. Default false. */
  circuitBreaker?: false | { failures: number; resetAfterMs: number }
  /** A dispatcher of undici 7 or 8 (a proxy, say) in place of the client's own connection pool. */
  dispatcher?: Dispatcher
}

/** Providers answer in a few KiB; key sets ask for more. */
export const DEFAULT_MAX_BYTES = 256 * 1024
export const MAX_TIMEOUT_MS = 10_000
const MAX_IN_FLIGHT = 50

/**
 * No answer, or none that may be read. Says neither the URL nor what the HTTP library said: both can hold tokens.
 * `code` is the system's word (`ECONNREFUSED`, `UND_ERR_SOCKET`), for logs.
 */
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
 * One pool of kept-alive connections. Redirects are not followed (a 3xx comes back as it is), nothing is decompressed
 * (any content-encoding is refused), at most 50 calls per origin and purpose are in flight.
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

/** Whether a client keeps the deadline and the byte cap by itself: one that was made here, and not what a host wrapped it in. */
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
  /** On the monotonic clock; 0: closed. */
  openUntil: number
  /** Another one begins with every opening and every probe: what a call of an earlier one comes to says nothing about now. */
  era: number
}

function originState(origins: Map<string, OriginState>, key: string): OriginState {
  const state = origins.get(key) ?? { inFlight: 0, failuresInARow: 0, openUntil: 0, era: 0 }
  origins.set(key, state)
  return state
}

function refuseWhenBusyOrBroken(origin: OriginState, breaker: Breaker): void {
  if (origin.inFlight >= MAX_IN_FLIGHT) throw new HttpClientError('TOO_MANY_IN_FLIGHT', 'Too many calls to this provider are under way.')
  if (!breaker || origin.openUntil === 0) return
  if (performance.now() < origin.openUntil) throw new HttpClientError('CIRCUIT_OPEN', 'The provider failed repeatedly; not called.')
  // This caller is the probe: the others stay refused for as long as a call may take.
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
    method: (call.method ?? 'GET') as Dispatcher.HttpMethod, // any other word is undici's to refuse
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

/**
 * By undici's events themselves. Its `request` makes a stream of every answer, and follows an AbortSignal: together they take as
 * long as all the rest of a call.
 */
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
        // A dispatcher of the host's: nobody waits any more, and in a timer this would end the process.
      }
    }
    dispatcher.dispatch(request, {
      onRequestStart(controller) {
        under = controller
        stop(controller) // where it was given up while it waited for a connection
      },
      onRequestUpgrade(_controller, _statusCode, _fields, socket) {
        socket.destroy()
        reject(new HttpClientError('UPGRADED', 'The provider answered with another protocol.')) // to CONNECT
      },
      onResponseStart(_controller, statusCode, fields) {
        if (statusCode < 200) return // not the answer yet (RFC 9110 section 15.2)
        ;[status, headers, size, chunks] = [statusCode, fields, 0, []] // anew, where a dispatcher asked again
        if (isEncoded(fields)) giveUp(new HttpClientError('ENCODED', 'The provider answered in an encoding that was not asked for.'))
      },
      onResponseData(controller, bytes) {
        if (givenUp) return stop(controller)
        size += bytes.length
        if (size > maxBytes) giveUp(new HttpClientError('TOO_LARGE', 'The provider answered with too much.'))
        // Each is some 200 bytes beside its own: an answer of single bytes would take megabytes.
        else if (chunks.push(bytes) >= 1_000) chunks = [Buffer.concat(chunks)]
      },
      onResponseEnd: () => resolve({ status, headers, body: Buffer.concat(chunks) }),
      onResponseError: (_controller, error) => reject(error), // also when the connection is closed before the end
    })
  })
  return { answer, giveUp }
}

/** A few KiB of gzip can become gigabytes. We request `identity`, so an encoded response is refused. */
function isEncoded({ 'content-encoding': encoding }: HttpResponse['headers']): boolean {
  return encoding !== undefined && encoding !== '' && encoding !== 'identity'
}

/**
 * Once the time is over, or with the caller's signal. undici's own timers restart with every byte; only this one bounds a body
 * that drips. It does not hold the process, and nothing is left of it when it is released.
 */
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

/** Never the caller's own reason: to undici one that is `false`, say, is no reason to stop. */
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
  // undici 6 has `interceptors`, and other events.
  if (dispatcher !== undefined && (typeof dispatcher?.dispatch !== 'function' || 'interceptors' in dispatcher))
    throw new ConfigurationError('createHttpClient: dispatcher must be a dispatcher of undici 7 or 8.')
  return { timeoutMs, circuitBreaker, dispatcher: dispatcher ?? newPool(timeoutMs) }
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most
}

/**
 * Loads undici at boot, with the first pool: a host without a provider never has it.
 *
 * undici puts its own agent behind the host's `fetch` unless an agent is there. Node puts one there as soon as it loads its own
 * undici, which naming `Response` does. So the host's `fetch` stays Node's.
 */
function newPool(timeoutMs: number): Agent {
  void globalThis.Response
  const undici = require('undici') as typeof import('undici') // as its types say
  return new undici.Agent({
    connections: (purposes + 1) * MAX_IN_FLIGHT, // and calls of no purpose, which a host makes
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  })
}
