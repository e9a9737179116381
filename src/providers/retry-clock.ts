/** When a fetch that failed is tried again: 1, 2, 4 … 60 seconds after each failure. */
export interface RetryClock {
  failed(): void
  succeeded(): void
  /** True where the last fetch failed. */
  hasFailed(): boolean
  /** True where it failed so short ago that its failure is still news: nobody has to wait for another. */
  hasFailedLately(): boolean
  /** False until the time after a failure is over. */
  isDue(): boolean
  /** Until then; null: the last fetch did not fail. */
  secondsLeft(): number | null
}

const MAX_DELAY_SECONDS = 60
/** Longer than the longest delay and a call that hangs: while the set is in use, a failure is never older. */
const LATELY_SECONDS = 120

export function createRetryClock(now: () => Date): RetryClock {
  let failures = 0
  let failedAt = 0

  // A clock that was set back must not stretch the delay.
  const elapsedSeconds = () => {
    const elapsed = (now().getTime() - failedAt) / 1000
    return elapsed < 0 ? Number.POSITIVE_INFINITY : elapsed
  }
  const left = () => Math.min(2 ** (failures - 1), MAX_DELAY_SECONDS) - elapsedSeconds()

  return {
    failed() {
      failures += 1
      failedAt = now().getTime()
    },
    succeeded() {
      failures = 0
    },
    hasFailed: () => failures > 0,
    hasFailedLately: () => failures > 0 && elapsedSeconds() < LATELY_SECONDS,
    isDue: () => failures === 0 || left() <= 0,
    secondsLeft: () => (failures === 0 ? null : left()),
  }
}
