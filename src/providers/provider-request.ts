import {
  type CallPurpose,
  DEFAULT_MAX_BYTES,
  type HttpClient,
  HttpClientError,
  type HttpRequest,
  isBounded,
  MAX_TIMEOUT_MS,
} from '../core/http-client'

export interface ProviderAnswer {
  status: number
  location: string | null
  body: Buffer
}

/**
 * 10 seconds in total, and a maximum number of bytes. The limits also apply to a host's own HTTP client.
 * @throws HttpClientError when no response comes, or its form or size is not usable
 */
export async function callProvider(httpClient: HttpClient, url: string, request: HttpRequest): Promise<ProviderAnswer> {
  const maxBytes = request.maxBytes ?? DEFAULT_MAX_BYTES
  const call = (signal?: AbortSignal) => httpClient(url, { ...request, maxBytes, ...(signal && { signal }) })
  const response: unknown = await (isBounded(httpClient) ? call() : withDeadline(call)).catch((error: unknown) => {
    throw withoutMessage(error)
  })
  const { status, headers, body } = Object(response) as { status?: unknown; headers?: unknown; body?: unknown } // a host's client can return anything
  if (!Number.isInteger(status)) throw new HttpClientError('NO_STATUS', 'The HTTP client returned no status.')
  const { location } = Object(headers) as { location?: unknown } // a host's client can return anything
  return { status: Number(status), location: typeof location === 'string' ? location : null, body: bytesOf(body, maxBytes) }
}

function withDeadline<Result>(call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController()
  return new Promise<Result>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new HttpClientError('TIMEOUT', 'The provider did not answer in time.'))
      controller.abort()
    }, MAX_TIMEOUT_MS)
    timer.unref()
    // An async arrow, so that a client that throws counts like a client that rejects.
    ;(async () => call(controller.signal))()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

/** A foreign message can contain the URL, and the URL can contain a token. */
function withoutMessage(error: unknown): HttpClientError {
  if (error instanceof HttpClientError) return error
  return new HttpClientError(error instanceof Error ? error.name : 'UNKNOWN', 'The HTTP client failed.')
}

function bytesOf(body: unknown, maxBytes: number): Buffer {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) throw new HttpClientError('NO_BODY', 'The HTTP client returned no body.')
  // A string never has more UTF-16 units than UTF-8 bytes, so this rejects a string before copying it.
  if (body.length > maxBytes) throw new HttpClientError('TOO_LARGE', 'The answer of the provider is too large.')
  const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (bytes.length > maxBytes) throw new HttpClientError('TOO_LARGE', 'The answer of the provider is too large.')
  return bytes
}

export function parseJsonList(bytes: Uint8Array): Record<string, unknown>[] | null {
  const value = parseJson(bytes)
  return Array.isArray(value) && value.every(isSafeObject) ? value : null
}

/** RFC 8259, nested at most 64 deep for recursive code. `Object.assign` would apply a member `__proto__`. Null: any other value. */
export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> | null {
  const value = parseJson(bytes)
  return isSafeObject(value) ? value : null
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

function parseJson(bytes: Uint8Array): unknown {
  if (nestsDeeperThan(bytes, 64)) return null
  try {
    return JSON.parse(strictUtf8.decode(bytes))
  } catch {
    return null // not UTF-8 or not JSON: the caller rejects both
  }
}

function isSafeObject(value: unknown): value is Record<string, unknown> {
  return isPlainObject(value) && !Object.hasOwn(value, '__proto__')
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function nestsDeeperThan(bytes: Uint8Array, most: number): boolean {
  let depth = 0
  let isInString = false
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index]
    if (isInString && byte === BACKSLASH) index += 1
    else if (byte === QUOTE) isInString = !isInString
    else if (!isInString && (byte === OPEN_BRACE || byte === OPEN_BRACKET)) depth += 1
    else if (!isInString && (byte === CLOSE_BRACE || byte === CLOSE_BRACKET)) depth -= 1
    if (depth > most) return true
  }
  return false
}

const [QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = Buffer.from('"\\{}[]')

/** Rejects a call beyond the limit, and has no queue. */
interface CallLimit {
  run<Result>(call: () => Promise<Result>): Promise<Result>
}

/** One limit a purpose, so that calls of unauthenticated clients do not block logins. */
export interface CallLimits {
  run<Result>(purpose: CallPurpose, call: () => Promise<Result>): Promise<Result>
}

/**
 * A provider that hangs must not use too many sockets and too much memory of this process.
 * @param refusal makes the error for a call beyond the limit
 * @param most the most calls that run at once for each purpose
 */
export function limitInFlight(refusal: () => Error, most = 50): CallLimits {
  const limits = new Map<CallPurpose, CallLimit>()
  return {
    run(purpose, call) {
      const limit = limits.get(purpose) ?? limitOne(refusal, most)
      limits.set(purpose, limit)
      return limit.run(call)
    },
  }
}

function limitOne(refusal: () => Error, most: number): CallLimit {
  let inFlight = 0
  return {
    async run(call) {
      if (inFlight >= most) throw refusal()
      inFlight += 1
      try {
        return await call()
      } finally {
        inFlight -= 1
      }
    },
  }
}

/** 1, 2, 4 … 60 seconds after each failure. */
interface RetryClock {
  failed(): void
  succeeded(): void
  hasFailed(): boolean
  /** Less than 120 seconds ago. In that time, no request has to wait for another attempt. */
  hasFailedLately(): boolean
  isDue(): boolean
  secondsLeft(): number | null
}

const MAX_DELAY_SECONDS = 60
/** Longer than the longest delay plus a call that hangs. So the last failure of an unreadable set in use is always more recent. */
const LATELY_SECONDS = 120

export function createRetryClock(now: () => Date): RetryClock {
  let failures = 0
  let failedAt = 0

  // If the clock was set back, the delay must not become longer.
  const elapsedSeconds = () => {
    const elapsed = (now().getTime() - failedAt) / 1000
    return elapsed < 0 ? Number.POSITIVE_INFINITY : elapsed
  }
  const left = () => Math.min(2 ** (failures - 1), MAX_DELAY_SECONDS) - elapsedSeconds()

  return {
    failed() {
      failures += 1
      failedAt = now().getTime()
    },
    succeeded() {
      failures = 0
    },
    hasFailed: () => failures > 0,
    hasFailedLately: () => failures > 0 && elapsedSeconds() < LATELY_SECONDS,
    isDue: () => failures === 0 || left() <= 0,
    secondsLeft: () => (failures === 0 ? null : left()),
  }
}
