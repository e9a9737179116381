import type { Request } from 'express'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionStore, SessionWithUser } from '../store/auth-store'

interface ReadRow {
  readonly sessions: SessionStore
  readonly row: SessionWithUser
  /** Time of the real clock, in milliseconds. */
  readonly at: number
}

/**
 * Handlers of a request usually follow one another at once. After this time the row is read again, because the session may have ended while a
 * slow body arrived.
 */
const believedMs = 1_000

const read = new WeakMap<Request, ReadRow>()

/** Keeps the row that a guard read, so that later handlers of the request do not read it again from the same store. */
export function keepSessionRow(req: Request, sessions: SessionStore, row: SessionWithUser): void {
  read.set(req, { sessions, row, at: performance.now() })
}

/** Returns the row that a guard of this request read, of the session with this id or cookie. Null: no guard read it. */
export function sessionRowOf(req: Request, sessions: SessionStore, named: { id: string } | { token: string }): SessionWithUser | null {
  const known = read.get(req)
  if (known?.sessions !== sessions || performance.now() - known.at > believedMs) return null
  const { session } = known.row
  const isNamed = 'id' in named ? session.id === named.id : session.tokenHash === hashOpaqueToken(named.token)
  return isNamed ? known.row : null
}
