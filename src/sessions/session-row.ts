import type { Request } from 'express'
import { hashOpaqueToken } from '../core/opaque-token'
import type { SessionStore, SessionWithUser } from '../store/auth-store'

interface ReadRow {
  readonly sessions: SessionStore
  readonly row: SessionWithUser
  /** When a guard read the row: the time of the real clock, in milliseconds. */
  readonly at: number
}

/**
 * How long the guards reuse the row, in milliseconds. Handlers of a request usually run immediately after one another. A slow body can
 * delay a handler, and the session can end during that time. So after this time, the guard reads the row again.
 */
const believedMs = 1_000

const read = new WeakMap<Request, ReadRow>()

/** Stores the row that a guard read. Later handlers of the request do not read the row again from the same store. */
export function keepSessionRow(req: Request, sessions: SessionStore, row: SessionWithUser): void {
  read.set(req, { sessions, row, at: performance.now() })
}

/** Returns the row of the session with this id or cookie. Returns null if no guard of this request read the row. */
export function sessionRowOf(req: Request, sessions: SessionStore, named: { id: string } | { token: string }): SessionWithUser | null {
  const known = read.get(req)
  if (known?.sessions !== sessions || performance.now() - known.at > believedMs) return null
  const { session } = known.row
  const isNamed = 'id' in named ? session.id === named.id : session.tokenHash === hashOpaqueToken(named.token)
  return isNamed ? known.row : null
}
