import { testClock as clockAt, type TestClock } from '../../src/testing/mailbox'

export type { TestClock }

/** The kit's clock, at one instant for all of our tests. */
export function testClock(start = new Date('2026-03-01T12:00:00.000Z')): TestClock {
  return clockAt(start)
}
