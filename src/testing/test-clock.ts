/** A clock that stands still until it is moved. */
export interface TestClock {
  /** For `createAuthRouter({ now })`, and for whatever else is to live in the same time. */
  now(): Date
  /** By seconds, forwards. */
  advance(seconds: number): void
}

/** @param start default: the instant of the call */
export function testClock(start: Date = new Date()): TestClock {
  let instant = start.getTime()
  return {
    now: () => new Date(instant),
    advance(seconds) {
      instant += seconds * 1000
    },
  }
}
