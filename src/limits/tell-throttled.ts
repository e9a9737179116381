import type { AuthContext } from '../context'
import { eventDigest } from '../events'

/** What a refusal for too many requests is about. */
export interface Refused {
  code: string
  /** What the route budget or the limit is called. */
  route: string
  /** The key of the counter. */
  key: string
  retryAfterSeconds: number
}

/** Tells observers of one refusal for too many requests. They get a digest of the counter's key, because a key names a client or an account. */
export function tellThrottled(ctx: Pick<AuthContext, 'events' | 'keys'>, { key, ...refused }: Refused): void {
  ctx.events.emit('throttled', { ...refused, keyDigest: eventDigest(ctx.keys, 'counter', key) })
}
