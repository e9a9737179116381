import type { CallPurpose } from '../core/http-client'

/** Limits the calls that run at the same time. Rejects a call beyond the limit, and has no queue. */
export interface CallLimit {
  run<Result>(call: () => Promise<Result>): Promise<Result>
}

/** Has a separate limit for each purpose, so that calls of unauthenticated clients do not block logins. */
export interface CallLimits {
  run<Result>(purpose: CallPurpose, call: () => Promise<Result>): Promise<Result>
}

/**
 * Returns a limit of simultaneous calls for each purpose. So a provider that hangs cannot use too many sockets and too much memory of this
 * process.
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
