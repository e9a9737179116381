import type { Request, RequestHandler, Response } from 'express'
import { clientOf, networkOf, networkTimes } from '../core/client-key'
import { ConfigurationError, TooManyRequestsError } from '../core/errors'
import { consoleLogger, safely } from '../core/logger'
import { createSetupWarnings, unreadableClient } from '../core/setup-warnings'
import { isAnswerable } from '../http/routes'
import { hasMethods, isObject, refuseUnknownOptions } from '../options'
import { withLocalFallback } from '../rate-limits/local-fallback'
import { memoryCounters } from '../rate-limits/memory-counters'
import type { CounterStore } from '../rate-limits/rate-limit'
import { counterKey } from '../rate-limits/rate-limiter'
import { refusing } from './refusing'

export interface RateLimitOptions {
  /** Maximum number of requests of one client in one window. Default 60. */
  limit?: number
  /** Length of the window in seconds. Default 60. */
  windowSeconds?: number
  /** Counters that several processes or several limits share. Default: the memory of this process, for this limit only. */
  counters?: CounterStore
  /**
   * Returns the key of a request. Requests with the same key count together. Default: the client's address (`req.ip`), for IPv6 the /64
   * network; the whole /48 network then has a limit ten times higher. If the address cannot be read, the request does not count, and the
   * console says so once.
   */
  key?: (req: Request) => string
  /** If it returns exactly true, the request does not count and is not rejected. */
  exempt?: (req: Request) => boolean
  /** A name for the limit. Two limits of the same size that share `counters` need different names. */
  name?: string
}

/**
 * Allows a number of requests in each window. Further requests get 429 TOO_MANY_REQUESTS with `Retry-After`. Counted requests get
 * `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds). If a shared store fails or is too slow, this process counts in
 * its own memory.
 * @throws ConfigurationError for a wrong option
 */
export function rateLimit(options: RateLimitOptions = {}): RequestHandler {
  const { limit, windowSeconds, counters, key, exempt, name } = complete(options)
  const guarded = withLocalFallback(counters)
  // With the limit, so that two limits in one store count separately. All processes with one limit share its counter.
  const budget = `rate-limit:${name}:${limit}/${windowSeconds}`
  const notices = createSetupWarnings(safely(consoleLogger))
  return refusing(async (req, res) => {
    if (exempt(req) === true) return // a promise is not `true`, so an async function exempts no request
    const subject = key(req)
    if (key === clientOf && subject === null) return notices.tell(unreadableClient(req.ip))
    const take = async (subject: unknown, limit: number) => {
      const { count, resetSeconds } = await guarded.increment(counterKey(budget, subjectOf(subject)), windowSeconds, limit)
      return { isOver: count > limit, count, seconds: Math.min(windowSeconds, Math.max(1, Math.ceil(resetSeconds))) }
    }
    const { isOver, count, seconds } = await take(subject, limit)
    setHeaders(res, { limit, remaining: Math.max(0, limit - count), seconds })
    if (isOver) throw tooMany(seconds)
    const network = key === clientOf && subject !== null ? networkOf(subject) : null
    if (network === null) return
    const ofNetwork = await take(network, limit * networkTimes)
    if (!ofNetwork.isOver) return
    setHeaders(res, { limit, remaining: 0, seconds: ofNetwork.seconds })
    throw tooMany(ofNetwork.seconds)
  })
}

function tooMany(seconds: number): TooManyRequestsError {
  return new TooManyRequestsError({ details: { retry_after_seconds: seconds } })
}

/** draft-ietf-httpapi-ratelimit-headers-06. */
function setHeaders(res: Response, { limit, remaining, seconds }: { limit: number; remaining: number; seconds: number }): void {
  if (!isAnswerable(res)) return
  res.setHeader('RateLimit-Limit', String(limit))
  res.setHeader('RateLimit-Remaining', String(remaining))
  res.setHeader('RateLimit-Reset', String(seconds))
}

/** Requests without a key share one rate limit. Otherwise they would have none. */
function subjectOf(key: unknown): string {
  return typeof key === 'string' && key !== '' ? `key:${key}` : 'unknown'
}

function complete(options: RateLimitOptions): Required<Omit<RateLimitOptions, 'key'>> & { key: (req: Request) => string | null } {
  if (!isObject(options))
    throw new ConfigurationError('rateLimit() takes an object: { limit, windowSeconds, counters, key, exempt, name }.')
  refuseUnknownOptions('rateLimit', options, ['limit', 'windowSeconds', 'counters', 'key', 'exempt', 'name'])
  const { limit = 60, windowSeconds = 60, key = clientOf, exempt = () => false, name = '' } = options
  const counters = options.counters ?? memoryCounters()
  const wrong =
    (!isWhole(limit, 1_000_000_000) && 'limit must be a whole number of at least 1') ||
    (!isWhole(windowSeconds, 31_536_000) && 'windowSeconds must be a whole number from 1 to 31536000') ||
    (!hasMethods('increment', 'decrement', 'reset')(counters) && 'counters must be a CounterStore; memoryCounters() makes one') ||
    (typeof key !== 'function' && 'key must be a function of a request that returns text') ||
    (typeof exempt !== 'function' && 'exempt must be a function of a request that says true or false') ||
    (typeof name !== 'string' && 'name must be text')
  if (wrong) throw new ConfigurationError(`rateLimit: ${wrong}.`)
  return { limit, windowSeconds, counters, key, exempt, name }
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= most
}
