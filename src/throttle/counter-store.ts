/**
 * Counts within fixed windows. A window starts at the first `increment` of a key and is not extended by later ones.
 * Shared by several processes, it is a store of Redis or SQL; within one, `memoryCounters()`.
 */
export interface CounterStore {
  /**
   * Takes one unit, atomically. `limit` is what the caller compares with: a store that must make room keeps the keys
   * that have reached theirs.
   */
  increment(key: string, windowSeconds: number, limit?: number): Promise<{ count: number; resetSeconds: number }>
  /** Gives one unit back; never below zero. */
  decrement(key: string): Promise<void>
  reset(key: string): Promise<void>
}

/** A rate limit: so many attempts in so many seconds. */
export interface Budget {
  /** How many are allowed within a window. */
  attempts: number
  /** Length of a window in seconds; it begins with the first attempt. */
  windowSeconds: number
}
