/**
 * Counts attempts within fixed windows. A window starts at the first `increment` of a key. Later increments do not extend the window.
 * Several processes need a store in Redis or SQL. `memoryCounters()` is enough for a single process.
 */
export interface CounterStore {
  /**
   * Counts an attempt, atomically. `limit` is the limit that the caller compares the count with. A store that must drop keys keeps the keys
   * that have reached their limit.
   */
  increment(key: string, windowSeconds: number, limit?: number): Promise<{ count: number; resetSeconds: number }>
  /** Takes an attempt back. The count never goes below zero. */
  decrement(key: string): Promise<void>
  reset(key: string): Promise<void>
}

/** A rate limit: a number of attempts in a number of seconds. */
export interface Budget {
  /** Number of attempts that are allowed within a window. */
  attempts: number
  /** Length of a window in seconds. A window starts with the first attempt. */
  windowSeconds: number
}

export type RateLimit = Budget
