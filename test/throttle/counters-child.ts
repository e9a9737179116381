/** The other process of shared-counters.test.ts: opens the same store, waits for the barrier, bursts, reports how many got through. */
import { setTimeout as delay } from 'node:timers/promises'
import { LoginThrottledError } from '../../src/core/errors'
import { attempt } from '../../src/rate-limits/rate-limiter'
import { type OpenCounters, openCounters, patient, type SharedStore } from './open-counters'

/** `startAt` is the barrier, in epoch milliseconds. */
export type Order = { store: SharedStore } | { startAt: number; key: string; attempts: number; times: number }

export type Report = 'ready' | { passed: number }

let open: OpenCounters | undefined

async function obey(order: Order): Promise<Report> {
  if ('store' in order) {
    await open?.close()
    open = await openCounters(order.store)
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => open?.counters.reset(key))) // connected before the barrier
    return 'ready'
  }
  if (!open) throw new Error('no store yet')
  const counters = patient(open.counters)
  await delay(order.startAt - performance.timeOrigin - performance.now() - 2)
  while (performance.timeOrigin + performance.now() < order.startAt);
  const rateLimit = { attempts: order.attempts, windowSeconds: 900 }
  const burst = Array.from({ length: order.times }, () => attempt(counters, rateLimit, order.key, LoginThrottledError))
  return { passed: (await Promise.allSettled(burst)).filter(({ status }) => status === 'fulfilled').length }
}

process.on('message', (order: Order) => void obey(order).then((report) => process.send?.(report)))
process.on('disconnect', () => void open?.close())
process.send?.('ready')
