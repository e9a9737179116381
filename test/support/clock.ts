/** The tests' own time: stands still until it is moved. */
export function testClock(start = new Date('2026-03-01T12:00:00.000Z')) {
  let instant = start.getTime()
  return {
    now: () => new Date(instant),
    advance(seconds: number) {
      instant += seconds * 1000
    },
  }
}

export type TestClock = ReturnType<typeof testClock>
