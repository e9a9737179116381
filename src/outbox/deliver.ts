import type { AuthContext } from '../context'
import { describeError, logCounted, withOwnMessage } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import type { OutboxRecord, OutboxStore } from '../store/auth-store'
import { eventOf, type OutboxEvent } from './outbox-events'

/** Delivers an event to another system. If it throws, rejects or takes longer than 30 seconds, the event is delivered again later. */
export type OutboxHandler = (event: OutboxEvent) => unknown

export interface Delivering {
  readonly most: number
  readonly signal: AbortSignal
}

const handlerMs = 30_000
const leaseMs = 60_000
const idleMs = 1_000
const longestWaitSeconds = 3_600

/** A handler that hangs takes one place of `most`, and holds up the events of nobody else. */
export async function deliverUntil(
  ctx: AuthContext,
  outbox: OutboxStore,
  handler: OutboxHandler,
  { most, signal }: Delivering,
): Promise<void> {
  const running = new Set<Promise<void>>()
  let left = 0
  let wake: () => void = () => undefined
  const begin = (row: OutboxRecord) => {
    const delivery: Promise<void> = deliver(ctx, outbox, handler, row).finally(() => {
      running.delete(delivery)
      left -= 1
      if (left <= 0) wake()
    })
    running.add(delivery)
  }
  while (!signal.aborted) {
    const free = most - running.size
    const taken = free > 0 ? await take(ctx, outbox, free) : []
    left = Math.max(1, Math.ceil(taken.length / 2)) // then one statement takes many events at once again
    for (const row of taken) begin(row)
    if (signal.aborted) break
    await new Promise<void>((resolve) => {
      // With no free place, only the end of a delivery helps.
      const timer = running.size < most ? setTimeout(() => wake(), idleMs) : undefined
      wake = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      signal.addEventListener('abort', wake, { once: true })
    })
  }
  await Promise.all(running)
}

async function take(ctx: AuthContext, outbox: OutboxStore, most: number): Promise<OutboxRecord[]> {
  const now = ctx.now()
  try {
    return await outbox.take({ now, until: new Date(now.getTime() + leaseMs), most })
  } catch (error) {
    logDatabase(ctx, error)
    return []
  }
}

/** Never rejects. If the end of a delivery cannot be written, the event is delivered again after its lease. */
async function deliver(ctx: AuthContext, outbox: OutboxStore, handler: OutboxHandler, row: OutboxRecord): Promise<void> {
  // A process that stood still, or waited long for the database: another one may deliver the event before this handler ends.
  if (row.leasedUntil !== null && row.leasedUntil.getTime() - ctx.now().getTime() < handlerMs) return
  try {
    if (await succeeds(ctx, handler, row)) await outbox.markDelivered(row.id, ctx.now())
    else await outbox.markFailed({ id: row.id, leasedUntil: row.leasedUntil, nextAt: nextTry(ctx.now(), row.tries) })
  } catch (error) {
    logDatabase(ctx, error)
  }
}

async function succeeds({ logger }: AuthContext, handler: OutboxHandler, row: OutboxRecord): Promise<boolean> {
  const { id, name, tries } = row
  try {
    const handled = Promise.resolve(eventOf(row)).then(handler)
    await withTimeout(handled, handlerMs, () => withOwnMessage(new Error('The handler took longer than 30 seconds.')))
    return true
  } catch (error) {
    const fields = { id, event: name, tries: tries + 1, error: describeError(error) }
    logCounted(logger, {
      kind: 'outbox-handler',
      level: 'warn',
      fields,
      message: 'doorward: an event of the outbox could not be delivered, and is delivered again later',
    })
    return false
  }
}

function nextTry(now: Date, tries: number): Date {
  return new Date(now.getTime() + Math.min(longestWaitSeconds, 2 ** tries) * 1000)
}

function logDatabase({ logger }: AuthContext, error: unknown): void {
  const message = 'doorward: the database did not answer the outbox. The deliveries go on when the database works again'
  logCounted(logger, { kind: 'outbox-database', level: 'warn', fields: { error: describeError(error) }, message })
}
