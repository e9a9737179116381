import type { AuthContext } from '../context'
import { ConfigurationError } from '../core/errors'
import type { OutboxStore } from '../store/auth-store'
import type { OutboxHandler } from './deliver'

export interface DeliverOptions {
  /** The most handlers that run at once: 1 to 1,000. Default 100. */
  batchSize?: number
  /** Ends the deliveries. `deliver` resolves when the handlers that run have ended. */
  signal?: AbortSignal
}

export interface Outbox {
  /**
   * Delivers events until `signal` aborts or `auth.drain()` is called. Each event is delivered at least once, and the events of one person in
   * their order. Several processes share the work. After a failure, the event is delivered again after 1, 2, 4 … 3,600 seconds, and the later
   * events of its person wait.
   * @throws ConfigurationError while this process delivers already, and without the option `outbox: true`
   */
  deliver(handler: OutboxHandler, options?: DeliverOptions): Promise<void>
  /**
   * How many events wait, how many of them failed at least once, and the age of the oldest one in seconds (0: none waits).
   * @throws ConfigurationError without the option `outbox: true`; ServiceUnavailableError if the database cannot be reached
   */
  status(): Promise<{ waiting: number; failing: number; oldestSeconds: number }>
  /**
   * Deletes an event that waits, so that it is not delivered again. Returns true if there was one. A handler that has it now goes on.
   * @throws ConfigurationError without the option `outbox: true`; ServiceUnavailableError if the database cannot be reached
   */
  discard(id: string): Promise<boolean>
}

/** @param isOn the option `outbox` of the router */
export function createOutbox(ctx: AuthContext, isOn: boolean): Outbox & { stop(): Promise<void> } {
  let delivering: { readonly ended: Promise<void>; stop(): void } | null = null
  const rows = (): OutboxStore => {
    if (isOn && ctx.store.outbox) return ctx.store.outbox
    throw new ConfigurationError('auth.outbox needs the option `outbox: true` of createAuthRouter().')
  }
  return {
    async deliver(handler, { batchSize = 100, signal } = {}) {
      const outbox = rows()
      if (typeof handler !== 'function') throw new ConfigurationError('auth.outbox.deliver() needs a function that gets one event.')
      if (!Number.isInteger(batchSize) || batchSize < 1 || batchSize > 1_000)
        throw new ConfigurationError('auth.outbox.deliver(): batchSize must be a whole number from 1 to 1000.')
      if (delivering) throw new ConfigurationError('auth.outbox.deliver() runs already in this process. Call it once.')
      const stopping = new AbortController()
      const stop = () => stopping.abort()
      signal?.addEventListener('abort', stop)
      if (signal?.aborted) stop()
      const ended = begin(ctx, outbox, handler, { most: batchSize, signal: stopping.signal }).finally(() => {
        signal?.removeEventListener('abort', stop)
        delivering = null
      })
      delivering = { ended, stop }
      await ended
    },

    async status() {
      const { waiting, failing, oldestAt } = await rows().status()
      const ageMs = oldestAt === null ? 0 : ctx.now().getTime() - oldestAt.getTime()
      return { waiting, failing, oldestSeconds: Math.max(0, Math.floor(ageMs / 1000)) }
    },

    discard: async (id) => rows().discard(id),

    async stop() {
      delivering?.stop()
      await delivering?.ended
    },
  }
}

/** The module is loaded only where events are delivered. */
async function begin(...given: Parameters<typeof import('./deliver.js')['deliverUntil']>): Promise<void> {
  const { deliverUntil } = await import('./deliver.js')
  await deliverUntil(...given)
}
