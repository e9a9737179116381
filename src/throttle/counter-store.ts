/**
 * Counts within fixed windows. A window starts at the first `increment` of a key, and later ones do not extend it. For several processes use
 * a store in Redis or SQL; for one, `memoryCounters()`.
 */
export interface CounterStore {
  /**
   * Counts one attempt, atomically. `limit` is the limit that the caller compares with. A store that must drop keys keeps those that have
   * reached their limit.
   */
  increment(key: string, windowSeconds: number, limit?: number): Promise<{ count: number; resetSeconds: number }>
  /** Takes one attempt back; never below zero. */
  decrement(key: string): Promise<void>
  reset(key: string): Promise<void>
}

/** A rate limit: a number of attempts in a number of seconds. */
export interface Budget {
  /** Number of attempts that are allowed within a window. */
  attempts: number
  /** Length of a window in seconds. It starts with the first attempt. */
  windowSeconds: number
}
