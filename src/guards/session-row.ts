import type { Request } from 'express'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionStore, SessionWithUser } from '../store/auth-store'

interface ReadRow {
  readonly sessions: SessionStore
  readonly row: SessionWithUser
  /** By the real clock, in milliseconds. */
  readonly at: number
}

/** The steps of a request follow one another at once. One whose body is held back is asked about anew: its session may have ended meanwhile. */
const believedMs = 1_000

const read = new WeakMap<Request, ReadRow>()

/** Keeps the row that a guard read, so that later handlers of the request do not read it again from the same store. */
export function keepSessionRow(req: Request, sessions: SessionStore, row: SessionWithUser): void {
  read.set(req, { sessions, row, at: performance.now() })
}

/** Returns what a guard of this request read of the session with this id, or with this cookie; null where none did. */
export function sessionRowOf(req: Request, sessions: SessionStore, named: { id: string } | { token: string }): SessionWithUser | null {
  const known = read.get(req)
  if (known?.sessions !== sessions || performance.now() - known.at > believedMs) return null
  const { session } = known.row
  const isNamed = 'id' in named ? session.id === named.id : session.tokenHash === hashOpaqueToken(named.token)
  return isNamed ? known.row : null
}
