/** Decides when to try a failed fetch again: 1, 2, 4 … 60 seconds after each failure. */
export interface RetryClock {
  failed(): void
  succeeded(): void
  /** Returns true if the last fetch failed. */
  hasFailed(): boolean
  /** Returns true if the last fetch failed less than 120 seconds ago. In that time, no request has to wait for another attempt. */
  hasFailedLately(): boolean
  /** Returns false until the delay after a failure is over. */
  isDue(): boolean
  /** Returns the seconds until the next attempt. Null: the last fetch did not fail. */
  secondsLeft(): number | null
}

const MAX_DELAY_SECONDS = 60
/**
 * The time limit of `hasFailedLately`. It is longer than the longest delay plus a call that hangs. So while a key set is used but cannot be
 * read, its last failure is always more recent than this limit.
 */
const LATELY_SECONDS = 120

export function createRetryClock(now: () => Date): RetryClock {
  let failures = 0
  let failedAt = 0

  // If the clock was set back, the delay must not become longer.
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
