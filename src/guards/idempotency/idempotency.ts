import { createHash } from 'node:crypto'
import type { Request, RequestHandler, Response } from 'express'
import { ConfigurationError, ConflictError, ValidationError } from '../../core/errors'
import { consoleLogger, describeError, safely } from '../../core/logger'
import { createSetupWarnings, type SetupWarning } from '../../core/setup-warnings'
import { isSafeMethod } from '../../http/same-site'
import { headerValues } from '../../http/send'
import { hasMethods, isObject, refuseUnknownOptions } from '../../options'
import { findSubject } from '../../sessions/current-auth'
import { refuse } from '../refusing'
import { type CapturedAnswer, captureAnswer, replay } from './captured-answer'
import { asked, entryOf, memoryResponses, type ResponseCache, readEntry } from './response-cache'

export interface IdempotencyOptions {
  /** How long a response is stored, in seconds. Default 86400. */
  ttlSeconds?: number
  /** A cache that several processes share. Default: the memory of this process, with at most 10,000 responses and 64 MiB. */
  cache?: ResponseCache
  /**
   * Returns the name of the caller, if another library identifies it, for example by a session. It has priority over the user of our guards
   * and over the `Authorization` header.
   */
  caller?: (req: Request) => string
}

const unknownCaller: SetupWarning = {
  level: 'warn',
  entry: 'idempotency-without-a-caller',
  message:
    'idempotency() cannot tell who sent a request with an Idempotency-Key, so it does not store the response, and a repeated request runs again. Put a guard before idempotency(), or pass `caller`.',
}

/** Seconds that a claim stays if its process dies. */
const claimSeconds = 600

/**
 * Runs a request with an `Idempotency-Key` only once. A repetition by the same caller with the same body gets the first response again,
 * with `Idempotency-Replayed: true` (draft-ietf-httpapi-idempotency-key-header-06). While the first request runs, it gets 409 CONFLICT with
 * `Retry-After`. A repetition with another body gets 422. Ignores requests without the header, and GET, HEAD and OPTIONS. The caller is the
 * result of `caller(req)`, or the user that an earlier guard verified, or the `Authorization` header. If the caller is unknown, the request
 * runs every time, and the response has `Idempotency-Stored: false`. Never stores cookies. Does not store a response with status 5xx, 408,
 * 425 or 429, with `Retry-After`, or with more than 1 MiB: a repetition then runs again. Do not use the middleware for the routes of
 * doorward.
 * @throws ConfigurationError for a wrong option
 */
export function idempotency(options: IdempotencyOptions = {}): RequestHandler {
  const { ttlSeconds, cache, caller } = complete(options)
  const notices = createSetupWarnings(safely(consoleLogger))

  /** Null: run the request now. If the caller is known, the response is then stored. */
  async function begin(req: Request, res: Response, key: string): Promise<CapturedAnswer | null> {
    const asking = callerOf(req, caller)
    if (asking === null) return passUnstored(res)
    const cacheKey = cacheKeyOf(req, key, asking)
    const fingerprint = fingerprintOf(req)
    const before = await asked(
      () => cache.claim(cacheKey, entryOf({ fingerprint, answer: null }), claimSeconds),
      // The claim arrived too late, and the request was already rejected: no request runs under it.
      (claimed) => claimed === null && cache.delete(cacheKey),
    )
    if (before !== null) return answerOf(res, fingerprint, before)
    const claim = holdClaim(res, { cache, cacheKey, claimSeconds })
    captureAnswer(req, res, (answer) => claim.settle(answer && { value: entryOf({ fingerprint, answer }), ttlSeconds }))
    return null
  }

  function passUnstored(res: Response): null {
    res.setHeader('Idempotency-Stored', 'false')
    notices.tell(unknownCaller)
    return null
  }

  return (req, res, next) => {
    answerBefore(req, res)
      .then(
        (answer) => (answer ? replay(res, answer) : next()),
        (error: unknown) => refuse(req, res, next, error),
      )
      // Express handles errors of the handler. `catch` only prevents an unhandled rejection.
      .catch(() => undefined)
  }

  async function answerBefore(req: Request, res: Response): Promise<CapturedAnswer | null> {
    const key = isSafeMethod(req.method) ? null : readIdempotencyKey(req)
    return key === null ? null : begin(req, res, key)
  }
}

function answerOf(res: Response, fingerprint: string, before: string): CapturedAnswer {
  const entry = readEntry(before)
  if (entry.fingerprint !== fingerprint)
    throw new ValidationError({ details: { errors: [{ path: 'Idempotency-Key', rule: 'used_with_another_body' }] } })
  if (entry.answer) return entry.answer
  res.setHeader('Retry-After', '1')
  throw new ConflictError({ details: { reason: 'still_running', retry_after_seconds: 1 } })
}

function complete(options: IdempotencyOptions): { ttlSeconds: number; cache: ResponseCache; caller: IdempotencyOptions['caller'] } {
  if (!isObject(options)) throw new ConfigurationError('idempotency() takes an object: { ttlSeconds, cache, caller }.')
  refuseUnknownOptions('idempotency', options, ['ttlSeconds', 'cache', 'caller'])
  const { ttlSeconds = 86_400, cache = memoryResponses(), caller } = options
  const wrong =
    (!(Number.isSafeInteger(ttlSeconds) && ttlSeconds >= 1 && ttlSeconds <= 31_536_000) &&
      'ttlSeconds must be a whole number from 1 to 31536000') ||
    (!hasMethods('claim', 'set', 'delete')(cache) && 'cache must be a ResponseCache, with the methods claim, set and delete') ||
    (caller !== undefined && typeof caller !== 'function' && 'caller must be a function of a request that returns text')
  if (wrong) throw new ConfigurationError(`idempotency: ${wrong}.`)
  return { ttlSeconds, cache, caller }
}

/** Milliseconds after a disconnect. The handler can still be running, and a second attempt must not run in parallel. */
const graceMs = 60_000

const logger = safely(consoleLogger)

interface Claim {
  /** With null, the request may run again. */
  settle(kept: { value: string; ttlSeconds: number } | null): void
}

/** The claim ends once: when the response is complete, when it expires, or one minute after a disconnect without a response. */
function holdClaim(
  res: Response,
  { cache, cacheKey, claimSeconds }: { cache: ResponseCache; cacheKey: string; claimSeconds: number },
): Claim {
  const endsAt = performance.now() + claimSeconds * 1000
  let isSettled = false
  let timer: NodeJS.Timeout | undefined

  function settle(kept: { value: string; ttlSeconds: number } | null): void {
    if (isSettled) return
    isSettled = true
    clearTimeout(timer)
    if (performance.now() < endsAt) void write(kept) // after that time, another request can have the claim
  }

  async function write(kept: { value: string; ttlSeconds: number } | null): Promise<void> {
    try {
      await (kept ? cache.set(cacheKey, kept.value, kept.ttlSeconds) : cache.delete(cacheKey))
    } catch (error) {
      logger.error({ error: describeError(error) }, 'doorward: idempotency() could not write to the cache of responses')
    }
  }

  function letGo(): void {
    if (!isSettled) timer = setTimeout(() => settle(null), graceMs).unref()
  }

  if (res.destroyed) letGo()
  else res.once('close', letGo)
  return { settle }
}

/** @throws ValidationError if the header was sent twice, or is not 1 to 255 visible ASCII characters */
function readIdempotencyKey(req: Request): string | null {
  const [key, ...others] = headerValues(req, 'idempotency-key')
  if (key === undefined) return null
  if (others.length === 0 && /^[\x21-\x7e]{1,255}$/.test(key)) return key
  const rule = others.length > 0 ? 'only_once' : 'visible_ascii_of_1_to_255'
  throw new ValidationError({ details: { errors: [{ path: 'Idempotency-Key', rule }] } })
}

function cacheKeyOf(req: Request, key: string, caller: readonly unknown[]): string {
  const host = req.headers.host?.toLowerCase().replace(/:\d+$/, '') // one process can serve several tenants by host name
  return digestOf([req.method, host, req.baseUrl + req.url, key, caller])
}

/** Null: unknown. Cookies and IP addresses identify no caller: cookies change with every login, and people share IP addresses. */
function callerOf(req: Request, caller: ((req: Request) => string) | undefined): readonly unknown[] | null {
  const name: unknown = caller?.(req)
  if (typeof name === 'string' && name !== '') return ['named', name]
  const subject = findSubject(req)
  if (subject !== null) return ['user', subject]
  const credentials = headerValues(req, 'authorization').filter((value) => value !== '')
  return credentials.length > 0 ? ['credentials', credentials] : null
}

/** If no parser has read the body yet, only headers count. @throws ValidationError if the body is nested too deep to be serialized */
function fingerprintOf(req: Request): string {
  // Without the boundary of a form, which each attempt has anew.
  const type = req.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  const length = req.readableDidRead ? null : req.headers['content-length']
  const body: unknown = req.body
  try {
    return digestOf([type, length, Buffer.isBuffer(body) ? body.toString('base64') : body])
  } catch {
    throw new ValidationError({ details: { errors: [{ path: '', rule: 'malformed' }] } })
  }
}

function digestOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts), 'utf8').digest('base64url')
}
