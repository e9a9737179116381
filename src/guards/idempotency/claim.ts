import type { Response } from 'express'
import { consoleLogger, describeError, safely } from '../../core/logger'
import type { ResponseCache } from './response-cache'

/**
 * How long a claim stays after the client disconnected, in milliseconds. The handler can still be running, and a second attempt must not
 * run in parallel.
 */
const graceMs = 60_000

const logger = safely(consoleLogger)

export interface Claim {
  /** Ends the claim and stores the response. With null, the request may run again. */
  settle(kept: { value: string; ttlSeconds: number } | null): void
}

/**
 * Manages the claim of a running request. The claim ends once, at the first of these events:
 * - The response is complete.
 * - One minute has passed after the client disconnected, and there is no response.
 * - The claim expires.
 */
export function holdClaim(
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
