export interface Stopwatch {
  milliseconds(): number
}

/** Time since now, by the host's clock or by the process's, whichever went further: a clock may be set back, or stand still. */
export function stopwatch(now: () => Date): Stopwatch {
  const [started, startedAt] = [performance.now(), now().getTime()]
  return { milliseconds: () => Math.max(performance.now() - started, now().getTime() - startedAt) }
}
