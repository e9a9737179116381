import type { AuthContext } from '../../context'
import { describeError } from '../../core/logger'
import type { AuthStore } from '../../store/auth-store'
import type { PurgeProgress } from '../../store/purge-expired'

export interface AutomaticPurge {
  /** Ends after the current batch. Goes on a minute later, because a serverless platform drains after every request. */
  pause(): Promise<void>
}

const againMs = 60_000

/**
 * Its timers do not keep the process alive. The first purge comes at a random moment of the first interval, so that processes that start
 * together do not purge together.
 * @param store the store as the host passed it
 */
export function startPurge(ctx: AuthContext, store: AuthStore, everyMinutes: number): AutomaticPurge {
  const everyMs = everyMinutes * 60_000
  const progress: PurgeProgress = new Map()
  let pausing = new AbortController()
  let running: Promise<void> | null = null
  void sayIfNothingRuns(ctx, store)
  wait(Math.random() * everyMs)

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
    wait(pausing.signal.aborted && progress.size > 0 ? againMs : everyMs)
  }

  return {
    async pause() {
      pausing.abort()
      await running
    },
  }
}

/** A database that does not answer is the business of the check of the tables. */
async function sayIfNothingRuns({ logger }: AuthContext, { leases }: AuthStore): Promise<void> {
  const isPresent = async () => leases !== undefined && (await leases.isPresent?.()) !== false
  if (await isPresent().catch(() => true)) return
  logger.warn(
    { table: 'auth_leases' },
    'doorward: there is no table of leases, so old rows are not deleted by themselves. Create it with `npx doorward migrate up`, or set `purge: false` and run `npx doorward purge` from a job',
  )
}
