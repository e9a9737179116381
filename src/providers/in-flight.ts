/** Calls that may be under way at once; the next is refused, not queued. */
export interface CallLimit {
  run<Result>(call: () => Promise<Result>): Promise<Result>
}

/**
 * What a provider that hangs may hold of this process: sockets, memory, waiting people.
 * @param refusal what a caller past the limit gets, at once
 */
export function limitInFlight(refusal: () => Error, most = 50): CallLimit {
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
