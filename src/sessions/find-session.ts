import type { AuthContext } from '../context'
import { type AuthMethod, amrFromText } from '../core/amr'
import { ConfigurationError } from '../core/errors'
import type { KeyList } from '../core/keys'
import { hashOpaqueToken } from '../core/opaque-token'
import type { SessionKind, SessionRecord, SessionStore, SessionWithUser } from '../store/auth-store'
import { after, earlier } from './instants'
import { hasTokenShape, readSessionToken } from './session-token'

/** The part of a session that its owner may see, without the token and its hash. */
export interface PublicSession {
  /** Identifies the session in a list. The id is not a credential. */
  readonly id: string
  readonly userId: string
  /** `tokens`: an access token and a refresh token. `session`: a session cookie. */
  readonly kind: SessionKind
  /** The methods of the login that started the session. */
  readonly amr: readonly AuthMethod[]
  readonly createdAt: Date
  /** The time of the last use. doorward updates this time at most once a minute. */
  readonly lastSeenAt: Date
  readonly expiresAt: Date
  readonly ip: string | null
  readonly userAgent: string | null
  /** The name of the provider that the person signed in with, as in the option `providers`. Null: the person used no provider. */
  readonly provider: string | null
}

export function toPublicSession(session: SessionRecord): PublicSession {
  const { id, userId, kind, createdAt, lastSeenAt, expiresAt, ip, userAgent, provider } = session
  const amr = Object.freeze(amrFromText(session.amr))
  return Object.freeze({ id, userId, kind, amr, createdAt, lastSeenAt, expiresAt, ip, userAgent, provider })
}

export interface LiveSession extends SessionWithUser {
  /** True: the session was just extended. The response sends the cookie again, so that the browser keeps it until the new end. */
  readonly hasSlid: boolean
}

/** The part of the context that finds a session by its cookie. */
export interface SessionLookUp {
  readonly sessions: SessionStore
  /**
   * Null: a guard without the secret. The guard cannot verify a MAC, so it queries the database for every text with the form of a token.
   */
  readonly sessionTokenKeys: KeyList | null
}

export type SessionContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'sessionTtlSeconds'> }
type TokensContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'refreshTokenTtlSeconds'> }

const slideAfterSeconds = 60

/**
 * Returns the session of a cookie's value, with its user, by one query. Extends the session, at most once a minute. Null: the session is
 * unknown, expired or revoked, or the account is deleted or inactive.
 */
export async function findLiveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findAliveSession(ctx, token)
  return found?.user.isActive ? found : null
}

/**
 * Finds a session like `findLiveSession`, but also of an inactive account. The function does not extend the session of an inactive account.
 */
export async function findAliveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findByToken(ctx, 'session', token)
  const live = found && isAlive(found.session, ctx.now()) ? await moveOn(ctx, found, ctx.settings.sessionTtlSeconds) : null
  return live?.session.tokenHash === found?.session.tokenHash ? live : null
}

/**
 * Returns the live session of a refresh token and its active user. The function does not use the token up, and does not extend the session.
 */
export async function findLiveTokens(ctx: LiveContext, token: string): Promise<SessionWithUser | null> {
  const found = await findByRefreshToken(ctx, token)
  return found?.user.isActive && isAlive(found.session, ctx.now()) ? found : null
}

/** Extends a session that `findLiveTokens` found, at most once a minute. Null: the session has ended since `findLiveTokens` read it. */
export async function slideTokens(ctx: TokensContext, found: SessionWithUser): Promise<LiveSession | null> {
  const live = await moveOn(ctx, found, ctx.settings.refreshTokenTtlSeconds)
  return live?.user.isActive ? live : null
}

type LiveContext = SessionLookUp & Pick<AuthContext, 'now'>

/**
 * Extends a session at most once a minute, if its user is active. Null: the session has ended since it was read.
 * @param idleSeconds how long the session lasts after its last use
 */
async function moveOn(ctx: LiveContext, found: SessionWithUser, idleSeconds: number): Promise<LiveSession | null> {
  const isDue = found.user.isActive && ctx.now() >= after(found.session.lastSeenAt, slideAfterSeconds)
  if (!isDue) return { ...found, hasSlid: false }
  const session = await slide(ctx, found.session, idleSeconds)
  if (session) return { session, user: found.user, hasSlid: true }
  // The session was not extended: it has ended since the first read, or a parallel request extended it or replaced its token. So this code
  // reads the session again.
  const again = await ctx.sessions.find({ id: found.session.id })
  const isAsked = again?.session.id === found.session.id && again.user.id === found.user.id
  return isAsked && isAlive(again.session, ctx.now()) ? { ...again, hasSlid: false } : null
}

/**
 * Returns true if the session of an old cookie value is still alive. `/reauthenticate` may have replaced the value during this request, and
 * the browser then has the new value. Without the secret, the function always returns false.
 */
export async function hasNewerToken({ sessions, sessionTokenKeys: keys, now }: LiveContext, token: string): Promise<boolean> {
  const named = keys && readSessionToken(keys, 'session', token)
  const found = named && (await sessions.find({ id: named.id }))
  return found?.session.id === named?.id && found !== null && isAlive(found.session, now()) && found.user.isActive
}

/** Returns the session of a cookie's value, even if the session has ended. With the secret, a token with a wrong MAC causes no query. */
export async function findBySessionCookie(lookUp: SessionLookUp, token: string): Promise<SessionWithUser | null> {
  return findByToken(lookUp, 'session', token)
}

async function findByToken(
  { sessions, sessionTokenKeys: keys }: SessionLookUp,
  kind: SessionKind,
  token: string,
): Promise<SessionWithUser | null> {
  const isPossible = keys ? readSessionToken(keys, kind, token) !== null : hasTokenShape(token)
  if (!isPossible) return null
  const tokenHash = hashOpaqueToken(token)
  const found = await sessions.find({ tokenHash, kind })
  // createGuards() uses the host's store directly, so this code checks the store's result.
  const isAsked = found?.session.tokenHash === tokenHash && found.session.kind === kind && found.session.userId === found.user.id
  return isAsked ? found : null
}

/** Returns the session whose current refresh token is `token`, even if the session has ended. A used token finds no session. */
export async function findByRefreshToken(lookUp: SessionLookUp, token: string): Promise<SessionWithUser | null> {
  return findByToken(lookUp, 'tokens', token)
}

export function isAlive({ revokedAt, expiresAt }: Pick<SessionRecord, 'revokedAt' | 'expiresAt'>, now: Date): boolean {
  return revokedAt === null && expiresAt > now
}

async function slide({ sessions, now }: LiveContext, session: SessionRecord, idleSeconds: number): Promise<SessionRecord | null> {
  const lastSeenAt = now()
  const slid = { lastSeenAt, expiresAt: earlier(after(lastSeenAt, idleSeconds), session.endsAt) }
  const isFirst = await sessions.touch(session.id, after(lastSeenAt, -slideAfterSeconds), slid, session.tokenHash)
  return isFirst ? { ...session, ...slid } : null
}

export function sessionsOf({ sessions }: AuthContext['store']): SessionStore {
  if (!sessions) throw new ConfigurationError('The store has no sessions; wire `sessions` in your AuthStore.')
  return sessions
}
