export interface Stopwatch {
  milliseconds(): number
}

/** Measures the time from now, by the host's clock or the process's clock, whichever advanced more. A clock may be set back, or stop. */
export function stopwatch(now: () => Date): Stopwatch {
  const [started, startedAt] = [performance.now(), now().getTime()]
  return { milliseconds: () => Math.max(performance.now() - started, now().getTime() - startedAt) }
}
