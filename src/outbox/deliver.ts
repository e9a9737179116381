import { setTimeout as sleep } from 'node:timers/promises'
import type { AuthContext } from '../context'
import { describeError, logCounted, withOwnMessage } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import type { OutboxRecord, OutboxStore } from '../store/auth-store'
import type { Delivering, OutboxHandler } from './outbox'
import { eventOf } from './outbox-events'

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
  const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  while (!signal.aborted) {
    const free = most - running.size
    const taken = free > 0 ? await take(ctx, outbox, free) : []
    const begun = taken.map((row) => {
      const delivery: Promise<void> = deliver(ctx, outbox, handler, row).finally(() => running.delete(delivery))
      running.add(delivery)
      return delivery
    })
    const pause = new AbortController()
    await Promise.race([
      stopped,
      ...(begun.length > 0 ? [firstHalf(begun)] : running),
      ...(running.size < most ? [sleep(idleMs, undefined, { signal: pause.signal }).catch(() => undefined)] : []),
    ])
    pause.abort()
  }
  await Promise.all(running)
}

/** After half of the deliveries, one statement takes many events at once again. */
function firstHalf(deliveries: readonly Promise<void>[]): Promise<void> {
  return new Promise((resolve) => {
    let left = Math.ceil(deliveries.length / 2)
    for (const delivery of deliveries) delivery.then(() => --left === 0 && resolve())
  })
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
