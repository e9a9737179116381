export interface Stopwatch {
  milliseconds(): number
}

/**
 * Measures the time since the call. Reads two clocks, the host's clock and the process's clock, and returns the longer time. The host's
 * clock alone is not enough, because it can stop or go back.
 */
export function stopwatch(now: () => Date): Stopwatch {
  const [started, startedAt] = [performance.now(), now().getTime()]
  return { milliseconds: () => Math.max(performance.now() - started, now().getTime() - startedAt) }
}
