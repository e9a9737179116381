/** A description that is read once: in the background, and at the latest when it is first needed. */
export interface BackgroundDiscovery<Found> {
  /** What was found; null: nothing yet. */
  readonly found: Found | null
  /** Reads it now, unless it is known; callers at the same moment share one attempt. */
  find(): Promise<Found>
  /** Tries again after 1, 2, 4 … 60 seconds until it is found. `onFailure` hears each failure. A second call does nothing. */
  begin(onFailure: (error: unknown) => void): void
}

const MAX_DELAY_SECONDS = 60

/** @param known what needs no reading; null: nothing */
export function createBackgroundDiscovery<Found>(read: () => Promise<Found>, known: Found | null): BackgroundDiscovery<Found> {
  let found = known
  let inFlight: Promise<Found> | null = null
  let hasBegun = false

  async function readOnce(): Promise<Found> {
    found = await read()
    return found
  }

  async function find(): Promise<Found> {
    if (found !== null) return found
    inFlight ??= readOnce().finally(() => {
      inFlight = null
    })
    return inFlight
  }

  async function attempt(delaySeconds: number, onFailure: (error: unknown) => void): Promise<void> {
    try {
      await find()
    } catch (error) {
      onFailure(error)
      // The system's clock: a test's stands still. No timer of ours keeps a process alive.
      setTimeout(() => void attempt(Math.min(delaySeconds * 2, MAX_DELAY_SECONDS), onFailure), delaySeconds * 1000).unref()
    }
  }

  return {
    get found() {
      return found
    },
    find,
    begin(onFailure) {
      if (hasBegun || found !== null) return
      hasBegun = true
      void attempt(1, onFailure)
    },
  }
}
