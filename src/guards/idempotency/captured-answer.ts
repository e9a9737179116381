import type { OutgoingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'

export interface CapturedAnswer {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string | readonly string[]])[]
  readonly body: Buffer
}

/** A larger body is not stored. */
const maxBodyBytes = 1024 * 1024

/** They belong to one connection or transmission (RFC 9110 section 7.6.1). A cookie is for one browser, and could name an ended session. */
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

/** Before earlier middleware such as compression, which also changes the replay. `done(null)`: do not store the response. */
export function captureAnswer(req: Request, res: Response, done: (answer: CapturedAnswer | null) => void): void {
  const inFront = readHead(res)
  const body = collectBody()
  let sent: Head | null = null

  // Node calls `writeHead` for every response, after later middleware has set its headers. Earlier middleware replaces `writeHead` too
  // (package on-headers), and sets its headers after this call.
  const { writeHead } = res
  res.writeHead = function (this: Response, ...given: unknown[]) {
    sent ??= readHead(res, Number(given[0]), given.find(isHeaders))
    return (writeHead as Passing).apply(this, given)
  } as typeof writeHead

  hear(res, body.add, () => {
    const bytes = body.bytes()
    // After an incomplete body of the request, a later attempt can succeed.
    const isCutOff = req.destroyed && !req.complete
    done(bytes && !isCutOff ? answerOf(sent ?? readHead(res), inFront, bytes) : null)
  })
}

// The overloads of `write`, `end` and `writeHead` differ, so all arguments are passed on unchanged.
type Passing = (...given: unknown[]) => unknown

function hear(res: Response, written: (chunk: unknown, encoding: unknown) => void, ended: () => void): void {
  // Earlier middleware can call `res.write` or `res.end` again during a call. That call must not be captured twice.
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

/** Without headers of earlier middleware, which sets them again on a replay. */
function answerOf({ status, headers }: Head, inFront: Head, body: Buffer): CapturedAnswer | null {
  const added = [...headers].filter(([name, value]) => String(value) !== String(inFront.headers.get(name)) && !ofOneSending.has(name))
  if (!isFinal(status) || added.some(([name]) => name === 'retry-after')) return null
  return { status, headers: added, body }
}

/** A client may repeat a request after 408, 425 or 429 (RFC 9110, 8470, 6585), or after a server error. */
function isFinal(status: number): boolean {
  return status >= 200 && status < 500 && ![408, 425, 429].includes(status)
}

function readHead(res: Response, status = res.statusCode, given: object = {}): Head {
  const headers = new Map<string, string | readonly string[]>()
  for (const [name, value] of [...pairsOf(res.getHeaders()), ...pairsOf(given)])
    if (value !== undefined) headers.set(name.toLowerCase(), Array.isArray(value) ? value.map(String) : String(value))
  return { status, headers }
}

/** `writeHead` accepts an object, a list of pairs, and a flat list of names and values. */
function pairsOf(given: object): [string, unknown][] {
  if (!Array.isArray(given)) return Object.entries(given as OutgoingHttpHeaders)
  if (Array.isArray(given[0])) return given as [string, unknown][]
  return given.flatMap((name, index) => (index % 2 === 0 ? [[String(name), given[index + 1]] as [string, unknown]] : []))
}

function isHeaders(given: unknown): given is object {
  return typeof given === 'object' && given !== null
}

/** `bytes()` returns null if the body is too large. */
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

/** A copy, because a stream can reuse its buffer. Empty if the caller of `end` passed only a callback. */
function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  // Node rejects an unknown encoding.
  if (typeof chunk === 'string') return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0)
}
