import { type EventEmitter, eventDigest } from '../core/events'
import type { Keys } from '../core/keys'

/** A request that a rate limit rejected. */
export interface ThrottledRequest {
  code: string
  /** The name of the rate limit or of its route. */
  route: string
  /** The key of the counter. */
  key: string
  retryAfterSeconds: number
}

/** Emits `throttled` for a rejected request. The event has a digest of the counter's key, because the key names a client or an account. */
export function tellThrottled(ctx: { readonly events: EventEmitter; readonly keys: Keys }, { key, ...refused }: ThrottledRequest): void {
  ctx.events.emit('throttled', { ...refused, keyDigest: eventDigest(ctx.keys, 'counter', key) })
}
