import { type AuthMethod, amrFromText } from '../amr'
import type { AuthContext } from '../context'
import { ConfigurationError } from '../errors'
import { hashOpaqueToken, isOpaqueToken } from '../opaque-token'
import type { SessionRecord, SessionStore, UserRecord } from '../store/auth-store'
import { after } from './refresh-token'

/** What of a server-side session its owner may see: neither the cookie's value nor its hash. */
export interface PublicSession {
  /** Names the session in a list; opens nothing. */
  readonly id: string
  readonly userId: string
  /** The methods of the login it began with. */
  readonly amr: readonly AuthMethod[]
  readonly createdAt: Date
  /** Written at most once a minute. */
  readonly lastSeenAt: Date
  readonly expiresAt: Date
  readonly ip: string | null
  readonly userAgent: string | null
}

export function toPublicSession({ id, userId, amr, createdAt, lastSeenAt, expiresAt, ip, userAgent }: SessionRecord): PublicSession {
  return Object.freeze({ id, userId, amr: Object.freeze(amrFromText(amr)), createdAt, lastSeenAt, expiresAt, ip, userAgent })
}

export interface LiveSession {
  readonly session: SessionRecord
  readonly user: UserRecord
  /** It was moved on just now: the cookie is sent again, so that the browser keeps it as long. */
  readonly hasSlid: boolean
}

export type SessionContext = Pick<AuthContext, 'now'> & {
  readonly settings: Pick<AuthContext['settings'], 'sessionTtlSeconds'>
  readonly sessions: SessionStore
}

const slideAfterSeconds = 60

/**
 * The session behind a cookie's value and its user, in one query; moved on when a minute has passed since it was. Null:
 * unknown, expired or ended, or its account is gone or inactive.
 */
export async function findLiveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findBySessionToken(ctx.sessions, token)
  if (!found || !isLive(found.session, ctx.now()) || !found.user.isActive) return null
  if (ctx.now() < after(found.session.lastSeenAt, slideAfterSeconds)) return { ...found, hasSlid: false }
  const session = await slide(ctx, found.session)
  if (session) return { session, user: found.user, hasSlid: true }
  // Ended since it was read, which nothing revives; or a request beside this one was first to move it on.
  const again = await findBySessionToken(ctx.sessions, token)
  return again?.user.isActive && isLive(again.session, ctx.now()) ? { ...again, hasSlid: false } : null
}

/** Expired ones too. What is no token of ours is not asked for; what an adapter calls a match is compared again. */
export async function findBySessionToken(
  sessions: SessionStore,
  token: string,
): Promise<{ session: SessionRecord; user: UserRecord } | null> {
  if (!isOpaqueToken(token)) return null
  const sessionHash = hashOpaqueToken(token)
  const found = await sessions.findWithUser(sessionHash)
  return found?.session.sessionHash === sessionHash && found.session.userId === found.user.id ? found : null
}

export function isLive({ expiresAt }: Pick<SessionRecord, 'expiresAt'>, now: Date): boolean {
  return expiresAt > now
}

async function slide({ sessions, settings, now }: SessionContext, session: SessionRecord): Promise<SessionRecord | null> {
  const lastSeenAt = now()
  const slid = { lastSeenAt, expiresAt: after(lastSeenAt, settings.sessionTtlSeconds) }
  return (await sessions.touch(session.id, after(lastSeenAt, -slideAfterSeconds), slid)) ? { ...session, ...slid } : null
}

export function sessionsOf({ sessions }: AuthContext['store']): SessionStore {
  if (!sessions) throw new ConfigurationError('The store has no server-side sessions; wire `sessions` in your AuthStore.')
  return sessions
}
