import type { OutgoingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'

export interface Answer {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string | readonly string[]])[]
  readonly body: Buffer
}

/** Larger bodies are not stored. */
const maxBodyBytes = 1024 * 1024

/**
 * Headers that belong to one connection or one transmission, not to the response (RFC 9110 section 7.6.1). Cookies are excluded too: they are
 * for one browser, and a stored cookie could be sent again after it has ended.
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
 * Captures the response as the handler writes it, before earlier middleware (compression, for example) changes it. The same middleware will
 * change the replayed response. `done` is called once, with the response, or with null if it must not be stored.
 */
export function captureAnswer(req: Request, res: Response, done: (answer: Answer | null) => void): void {
  const inFront = readHead(res)
  const body = collectBody()
  let sent: Head | null = null

  // Node calls this for every response. Later middleware has then set its headers. Earlier middleware has not, because it also does so here
  // (as the package on-headers does).
  const { writeHead } = res
  res.writeHead = function (this: Response, ...given: unknown[]) {
    sent ??= readHead(res, Number(given[0]), given.find(isHeaders))
    return (writeHead as Passing).apply(this, given)
  } as typeof writeHead

  hear(res, body.add, () => {
    const bytes = body.bytes()
    const isCutOff = req.destroyed && !req.complete // the body did not arrive in full, so another attempt may succeed
    done(bytes && !isCutOff ? answerOf(sent ?? readHead(res), inFront, bytes) : null)
  })
}

type Passing = (...given: unknown[]) => unknown // the overloads differ, so the arguments are passed on unchanged

function hear(res: Response, written: (chunk: unknown, encoding: unknown) => void, ended: () => void): void {
  let isPassing = false // earlier middleware may call the methods of res, which are ours now
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

export function replay(res: Response, { status, headers, body }: Answer): void {
  res.statusCode = status
  for (const [name, value] of headers) res.setHeader(name, value)
  res.setHeader('Idempotency-Replayed', 'true')
  res.end(body)
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string | readonly string[]>
}

/** Returns the response to store, without the headers that earlier middleware had set, because it sets them again on a replay. */
function answerOf({ status, headers }: Head, inFront: Head, body: Buffer): Answer | null {
  const added = [...headers].filter(([name, value]) => String(value) !== String(inFront.headers.get(name)) && !ofOneSending.has(name))
  if (!isFinal(status) || added.some(([name]) => name === 'retry-after')) return null
  return { status, headers: added, body }
}

/** Returns true unless the status asks for another attempt: 408, 425 and 429 (RFC 9110, 8470, 6585), and every error of the server. */
function isFinal(status: number): boolean {
  return status >= 200 && status < 500 && ![408, 425, 429].includes(status)
}

function readHead(res: Response, status = res.statusCode, given: object = {}): Head {
  const headers = new Map<string, string | readonly string[]>()
  for (const [name, value] of [...pairsOf(res.getHeaders()), ...pairsOf(given)])
    if (value !== undefined) headers.set(name.toLowerCase(), Array.isArray(value) ? value.map(String) : String(value))
  return { status, headers }
}

/** Returns the headers in each form that `writeHead` takes: an object, a list of pairs, or a flat list of names and values. */
function pairsOf(given: object): [string, unknown][] {
  if (!Array.isArray(given)) return Object.entries(given as OutgoingHttpHeaders)
  if (Array.isArray(given[0])) return given as [string, unknown][]
  return given.flatMap((name, index) => (index % 2 === 0 ? [[String(name), given[index + 1]] as [string, unknown]] : []))
}

function isHeaders(given: unknown): given is object {
  return typeof given === 'object' && given !== null
}

/** Collects a body. `bytes()` returns null if it is too large. */
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

/** Returns a copy of a chunk, because a stream may reuse its buffer. `end` may be called with only a callback. */
function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8') // Node rejects others
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0)
}
