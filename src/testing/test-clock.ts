/** A clock that does not move by itself. */
export interface TestClock {
  /** Returns the time of the clock. Pass it to `createAuthRouter({ now })`, and to other code that needs this clock. */
  now(): Date
  /** Moves the clock forward by seconds. */
  advance(seconds: number): void
}

/**
 * Returns a clock that starts at `start` and does not move by itself.
 * @param start default: the time of the call
 */
export function testClock(start: Date = new Date()): TestClock {
  let instant = start.getTime()
  return {
    now: () => new Date(instant),
    advance(seconds) {
      instant += seconds * 1000
    },
  }
}
