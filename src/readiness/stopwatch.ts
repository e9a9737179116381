export interface Stopwatch {
  milliseconds(): number
}

/**
 * Measures the time since the call. The result is the larger difference of two clocks: the host's clock and the process's clock. The host's
 * clock may stop or go back.
 */
export function stopwatch(now: () => Date): Stopwatch {
  const [started, startedAt] = [performance.now(), now().getTime()]
  return { milliseconds: () => Math.max(performance.now() - started, now().getTime() - startedAt) }
}
