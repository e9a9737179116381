import type { Response } from 'express'
import { consoleLogger, describeError, safely } from '../../logger'
import type { ResponseCache } from './response-cache'

/** The caller is gone, the handler may still be at work: another attempt beside it is what must not be. */
const graceMs = 60_000

const logger = safely(consoleLogger)

export interface Claim {
  /** The answer to keep; null: the request may run again. */
  settle(kept: { value: string; ttlSeconds: number } | null): void
}

/**
 * The right to run a request that was claimed for it. It ends with the answer, a minute after the caller hung up without one, or
 * with its own time, and only once.
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
    if (performance.now() < endsAt) void write(kept) // later it may be somebody else's
  }

  async function write(kept: { value: string; ttlSeconds: number } | null): Promise<void> {
    try {
      await (kept ? cache.set(cacheKey, kept.value, kept.ttlSeconds) : cache.delete(cacheKey))
    } catch (error) {
      logger.error({ error: describeError(error) }, 'doorward: an answer could not be kept for its repetition')
    }
  }

  function letGo(): void {
    if (!isSettled) timer = setTimeout(() => settle(null), graceMs).unref()
  }

  if (res.destroyed) letGo()
  else res.once('close', letGo)
  return { settle }
}
