import type { OutgoingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'

export interface CapturedAnswer {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string | readonly string[]])[]
  readonly body: Buffer
}

/** The maximum size of a stored body. The middleware does not store a larger body. */
const maxBodyBytes = 1024 * 1024

/**
 * Headers that the middleware does not store, because they belong to one connection or one transmission (RFC 9110 section 7.6.1). The list
 * includes cookies, because a cookie is for one browser, and a repeated cookie could name a session that has ended.
 */
const ofOneSending = new Set([
  'set-cookie',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'trailer',
  'upgrade',
  'date',
  'content-length',
])

/**
 * Captures the response as the handler writes it, before earlier middleware such as compression changes it. The same middleware will also
 * change the replayed response. The function calls `done` once, with the response, or with null if the response must not be stored.
 */
export function captureAnswer(req: Request, res: Response, done: (answer: CapturedAnswer | null) => void): void {
  const inFront = readHead(res)
  const body = collectBody()
  let sent: Head | null = null

  // Node calls `writeHead` for every response. At that time, later middleware has already set its headers. Earlier middleware sets its
  // headers after this call, because earlier middleware also replaces `writeHead` (package on-headers).
  const { writeHead } = res
  res.writeHead = function (this: Response, ...given: unknown[]) {
    sent ??= readHead(res, Number(given[0]), given.find(isHeaders))
    return (writeHead as Passing).apply(this, given)
  } as typeof writeHead

  hear(res, body.add, () => {
    const bytes = body.bytes()
    // If the body of the request did not arrive completely, the response is not stored. A later attempt can then succeed.
    const isCutOff = req.destroyed && !req.complete
    done(bytes && !isCutOff ? answerOf(sent ?? readHead(res), inFront, bytes) : null)
  })
}

// The type of `write`, `end` and `writeHead`. Their overloads differ, so the code passes all arguments on unchanged.
type Passing = (...given: unknown[]) => unknown

function hear(res: Response, written: (chunk: unknown, encoding: unknown) => void, ended: () => void): void {
  // During a call, earlier middleware can call `res.write` or `res.end` again. `isPassing` prevents that such a call is captured a second
  // time.
  let isPassing = false
  let isEnded = false

  function listen(pass: Passing, passed: () => void): Passing {
    return function (this: Response, ...given: unknown[]) {
      if (isPassing || isEnded) return pass.apply(this, given)
      written(given[0], given[1])
      isPassing = true
      try {
        const returned = pass.apply(this, given)
        passed()
        return returned
      } finally {
        isPassing = false
      }
    }
  }

  res.write = listen(res.write as Passing, () => undefined) as typeof res.write
  res.end = listen(res.end as Passing, () => {
    isEnded = true
    ended()
  }) as typeof res.end
}

export function replay(res: Response, { status, headers, body }: CapturedAnswer): void {
  res.statusCode = status
  for (const [name, value] of headers) res.setHeader(name, value)
  res.setHeader('Idempotency-Replayed', 'true')
  res.end(body)
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string | readonly string[]>
}

/**
 * Returns the response to store. The response contains no headers that earlier middleware had set, because that middleware sets them again
 * on a replay.
 */
function answerOf({ status, headers }: Head, inFront: Head, body: Buffer): CapturedAnswer | null {
  const added = [...headers].filter(([name, value]) => String(value) !== String(inFront.headers.get(name)) && !ofOneSending.has(name))
  if (!isFinal(status) || added.some(([name]) => name === 'retry-after')) return null
  return { status, headers: added, body }
}

/**
 * Returns true if the status is final. A client may repeat a request after 408, 425 or 429 (RFC 9110, 8470, 6585), or after a server error.
 */
function isFinal(status: number): boolean {
  return status >= 200 && status < 500 && ![408, 425, 429].includes(status)
}

function readHead(res: Response, status = res.statusCode, given: object = {}): Head {
  const headers = new Map<string, string | readonly string[]>()
  for (const [name, value] of [...pairsOf(res.getHeaders()), ...pairsOf(given)])
    if (value !== undefined) headers.set(name.toLowerCase(), Array.isArray(value) ? value.map(String) : String(value))
  return { status, headers }
}

/**
 * Returns the headers from each form that `writeHead` accepts. The forms are an object, a list of pairs, and a flat list of names and
 * values.
 */
function pairsOf(given: object): [string, unknown][] {
  if (!Array.isArray(given)) return Object.entries(given as OutgoingHttpHeaders)
  if (Array.isArray(given[0])) return given as [string, unknown][]
  return given.flatMap((name, index) => (index % 2 === 0 ? [[String(name), given[index + 1]] as [string, unknown]] : []))
}

function isHeaders(given: unknown): given is object {
  return typeof given === 'object' && given !== null
}

/** Collects a body. `bytes()` returns null if the body is too large. */
function collectBody(): { add(chunk: unknown, encoding: unknown): void; bytes(): Buffer | null } {
  let chunks: Buffer[] = []
  let length = 0
  return {
    add(chunk, encoding) {
      if (length > maxBodyBytes) return
      const bytes = bytesOf(chunk, encoding)
      length += bytes.length
      if (length > maxBodyBytes) chunks = []
      else chunks.push(bytes)
    },
    bytes: () => (length > maxBodyBytes ? null : Buffer.concat(chunks)),
  }
}

/** Returns a copy of a chunk, because a stream can reuse its buffer. If the caller of `end` passed only a callback, the copy is empty. */
function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  // The code does not check the encoding, because Node rejects an unknown encoding.
  if (typeof chunk === 'string') return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0)
}
