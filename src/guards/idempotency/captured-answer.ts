import type { OutgoingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'

export interface Answer {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string | readonly string[]])[]
  readonly body: Buffer
}

/** More than this is not kept. */
const maxBodyBytes = 1024 * 1024

/**
 * What belongs to one connection or one sending, not to the answer (RFC 9110 section 7.6.1). A cookie is for the browser that got
 * it: kept, it would lie in a store, and be handed out again when it may have ended.
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
 * Listens to the answer as the handler gives it, before what stands in front of us (compression, say) makes something else of
 * it; that will be done anew to the repetition. `done` hears once: the answer, or null if it is not one to keep.
 */
export function captureAnswer(req: Request, res: Response, done: (answer: Answer | null) => void): void {
  const inFront = readHead(res)
  const body = collectBody()
  let sent: Head | null = null

  // Node calls this for every response, after later middleware has set its headers and before earlier middleware does (both do it
  // here, as the package on-headers does).
  const { writeHead } = res
  res.writeHead = function (this: Response, ...given: unknown[]) {
    sent ??= readHead(res, Number(given[0]), given.find(isHeaders))
    return (writeHead as Passing).apply(this, given)
  } as typeof writeHead

  hear(res, body.add, () => {
    const bytes = body.bytes()
    const isCutOff = req.destroyed && !req.complete // a body that never came in whole was not refused for good
    done(bytes && !isCutOff ? answerOf(sent ?? readHead(res), inFront, bytes) : null)
  })
}

type Passing = (...given: unknown[]) => unknown // the overloads differ; the arguments go on as they came

function hear(res: Response, written: (chunk: unknown, encoding: unknown) => void, ended: () => void): void {
  let isPassing = false // what stands in front of us may write by the methods it finds on res, which are ours
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

/** Headers that stood there before us will stand there before the repetition too. */
function answerOf({ status, headers }: Head, inFront: Head, body: Buffer): Answer | null {
  const added = [...headers].filter(([name, value]) => String(value) !== String(inFront.headers.get(name)) && !ofOneSending.has(name))
  if (!isFinal(status) || added.some(([name]) => name === 'retry-after')) return null
  return { status, headers: added, body }
}

/** Not one that asks to be tried again: 408, 425 and 429 (RFC 9110, 8470, 6585), and every failure of the server. */
function isFinal(status: number): boolean {
  return status >= 200 && status < 500 && ![408, 425, 429].includes(status)
}

function readHead(res: Response, status = res.statusCode, given: object = {}): Head {
  const headers = new Map<string, string | readonly string[]>()
  for (const [name, value] of [...pairsOf(res.getHeaders()), ...pairsOf(given)])
    if (value !== undefined) headers.set(name.toLowerCase(), Array.isArray(value) ? value.map(String) : String(value))
  return { status, headers }
}

/** As `writeHead` takes them: an object, a list of pairs, or names and values in turn. */
function pairsOf(given: object): [string, unknown][] {
  if (!Array.isArray(given)) return Object.entries(given as OutgoingHttpHeaders)
  if (Array.isArray(given[0])) return given as [string, unknown][]
  return given.flatMap((name, index) => (index % 2 === 0 ? [[String(name), given[index + 1]] as [string, unknown]] : []))
}

function isHeaders(given: unknown): given is object {
  return typeof given === 'object' && given !== null
}

/** `bytes()` is null once there were too many. */
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

/** A copy: a stream may use its buffer again. `end` may be given a callback alone. */
function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8') // Node refuses others
  return chunk instanceof Uint8Array ? Buffer.from(chunk) : Buffer.alloc(0)
}
