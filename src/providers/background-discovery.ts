/** Reads a discovery document once: in the background, or at its first use. */
export interface BackgroundDiscovery<Found> {
  /** The result. Null: the document is not read yet. */
  readonly found: Found | null
  /** Returns the result, and reads the document if necessary. Simultaneous callers share one attempt. */
  find(): Promise<Found>
  /**
   * Reads in the background, and tries again after 1, 2, 4 … 60 seconds until the read succeeds. Calls `onFailure` for each failure. A
   * second call of `begin` does nothing.
   */
  begin(onFailure: (error: unknown) => void): void
}

const MAX_DELAY_SECONDS = 60

/** Creates a discovery that calls `read`. @param known a result that needs no reading; null: no such result */
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
      // Uses the system's clock, because the clock of a test does not move by itself. `unref` lets the process end while the timer waits.
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
