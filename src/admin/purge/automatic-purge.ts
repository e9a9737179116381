import type { AuthContext } from '../../context'
import { describeError } from '../../core/logger'
import type { AuthStore } from '../../store/auth-store'
import type { PurgeProgress } from '../../store/purge-expired'

export interface AutomaticPurge {
  /** Ends after the current batch. Goes on a minute later, because a serverless platform drains after every request. */
  pause(): Promise<void>
}

/** The first purge waits, so that a process of a few seconds, such as a command, begins none. */
const firstMs = 60_000

/** Its timers do not keep the process alive. @param store the store as the host passed it */
export function startPurge(ctx: AuthContext, store: AuthStore, everyMinutes: number): AutomaticPurge {
  const everyMs = everyMinutes * 60_000
  const progress: PurgeProgress = new Map()
  let pausing = new AbortController()
  let running: Promise<void> | null = null
  wait(firstMs)

  function wait(ms: number): void {
    setTimeout(() => {
      running = run()
    }, ms).unref()
  }

  async function run(): Promise<void> {
    pausing = new AbortController()
    try {
      const { purgeInTurn } = await import('./purge-now.js') // loaded at the first purge
      await purgeInTurn(ctx, store, everyMs, { signal: pausing.signal, progress })
    } catch (error) {
      ctx.logger.warn({ error: describeError(error) }, 'doorward: the purge failed. It is tried again after purge.everyMinutes')
    }
    wait(pausing.signal.aborted && progress.size > 0 ? firstMs : everyMs)
  }

  return {
    async pause() {
      pausing.abort()
      await running
    },
  }
}
