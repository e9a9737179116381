import type { Request, RequestHandler, Response } from 'express'
import { ConfigurationError, ConflictError, ValidationError } from '../../errors'
import { isSafeMethod } from '../../http/safe-method'
import { consoleLogger, safely } from '../../logger'
import { hasMethods, isObject, refuseUnknownOptions } from '../../options'
import { createSetupNotices, type Notice } from '../../setup-notices/notices'
import { refuse } from '../refusing'
import { type Answer, captureAnswer, replay } from './captured-answer'
import { holdClaim } from './claim'
import { memoryResponses } from './memory-responses'
import { cacheKeyOf, callerOf, fingerprintOf, readIdempotencyKey } from './repeatable-request'
import { asked, type ResponseCache } from './response-cache'
import { entryOf, readEntry } from './stored-entry'

export interface IdempotencyOptions {
  /** How long an answer is kept; default 86400. */
  ttlSeconds?: number
  /** Shared by several processes; default: in this process, at most 10,000 answers and 64 MiB. */
  cache?: ResponseCache
  /**
   * Who asks, where no guard of ours and no `Authorization` header says it: the session of another library, say. It comes before
   * both.
   */
  caller?: (req: Request) => string
}

const unknownCaller: Notice = {
  level: 'warn',
  entry: 'idempotency-without-a-caller',
  message:
    'idempotency() cannot tell who sent a request with an Idempotency-Key, so its answer is not stored and a repetition runs again. Put a guard in front of it, or pass `caller`.',
}

/** A process that died lets go of what it was running after this long. */
const claimSeconds = 600

/**
 * A request with an `Idempotency-Key` runs once: its repetition, by the same caller and with the same body, gets the first
 * answer again, with `Idempotency-Replayed: true` (draft-ietf-httpapi-idempotency-key-header-06). While
 * the first one runs: 409 CONFLICT with `Retry-After`; with another body: 422. Requests without the header, and GET, HEAD and
 * OPTIONS, pass. The caller is `caller(req)`, else the user that a guard in front verified, else the `Authorization` header; a
 * request of nobody known runs every time, with `Idempotency-Stored: false`. What is not kept, and so runs again: 5xx, 408, 425,
 * 429, what has `Retry-After`, more than 1 MiB. Cookies are not kept. Not for our own auth routes.
 * @throws ConfigurationError for an option that is not what it has to be
 */
export function idempotency(options: IdempotencyOptions = {}): RequestHandler {
  const { ttlSeconds, cache, caller } = complete(options)
  const notices = createSetupNotices(safely(consoleLogger))

  /** What was answered before; null: this one runs, and its answer will be kept. */
  async function begin(req: Request, res: Response, key: string): Promise<Answer | null> {
    const asking = callerOf(req, caller)
    if (asking === null) return passUnstored(res)
    const cacheKey = cacheKeyOf(req, key, asking)
    const fingerprint = fingerprintOf(req)
    const before = await asked(
      () => cache.claim(cacheKey, entryOf({ fingerprint, answer: null }), claimSeconds),
      // Claimed after all, for a request that was refused: nothing runs under it.
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
      .catch(() => undefined) // Express catches what a handler throws; outside of it nobody waits for this promise
  }

  async function answerBefore(req: Request, res: Response): Promise<Answer | null> {
    const key = isSafeMethod(req.method) ? null : readIdempotencyKey(req)
    return key === null ? null : begin(req, res, key)
  }
}

function answerOf(res: Response, fingerprint: string, before: string): Answer {
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
