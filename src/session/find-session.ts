import { type AuthMethod, amrFromText } from '../amr'
import type { AuthContext } from '../context'
import { ConfigurationError } from '../errors'
import type { KeyList } from '../keys'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionKind, SessionRecord, SessionStore, SessionWithUser } from '../store/auth-store'
import { after, earlier } from './instants'
import { hasTokenShape, isOldSessionToken, readSessionToken } from './session-token'

/** What of a session its owner may see: neither its token nor the token's hash. */
export interface PublicSession {
  /** Names the session in a list; opens nothing. */
  readonly id: string
  readonly userId: string
  /** `tokens`: an access token and a refresh token. `session`: behind a session cookie. */
  readonly kind: SessionKind
  /** The methods of the login it began with. */
  readonly amr: readonly AuthMethod[]
  readonly createdAt: Date
  /** Written at most once a minute. */
  readonly lastSeenAt: Date
  readonly expiresAt: Date
  readonly ip: string | null
  readonly userAgent: string | null
  /** The registration key of the provider that the person signed in with; null: none. */
  readonly provider: string | null
}

export function toPublicSession(session: SessionRecord): PublicSession {
  const { id, userId, kind, createdAt, lastSeenAt, expiresAt, ip, userAgent, provider } = session
  const amr = Object.freeze(amrFromText(session.amr))
  return Object.freeze({ id, userId, kind, amr, createdAt, lastSeenAt, expiresAt, ip, userAgent, provider })
}

export interface LiveSession extends SessionWithUser {
  /** It was moved on just now: the cookie is sent again, so that the browser keeps it as long. */
  readonly hasSlid: boolean
}

/** What a look-up by cookie needs. */
export interface SessionLookUp {
  readonly sessions: SessionStore
  /** Null: guards without the secret, which cannot tell junk from a token and ask the database. */
  readonly sessionTokenKeys: KeyList | null
}

export type SessionContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'sessionTtlSeconds'> }
type TokensContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'refreshTokenTtlSeconds'> }

const slideAfterSeconds = 60

/**
 * Returns the session behind a cookie's value and its user, by one query. Moves the session on when a minute has passed since it was. Null:
 * unknown, expired or ended, or its account is gone or inactive.
 */
export async function findLiveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findAliveSession(ctx, token)
  return found?.user.isActive ? found : null
}

/** The same, also when the account is inactive; such a session is not moved on. */
export async function findAliveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findByToken(ctx, 'session', token)
  const live = found && isAlive(found.session, ctx.now()) ? await moveOn(ctx, found, ctx.settings.sessionTtlSeconds) : null
  return live?.session.tokenHash === found?.session.tokenHash ? live : null
}

/** The living session of a refresh token and its active user. It is neither used up nor moved on. */
export async function findLiveTokens(ctx: LiveContext, token: string): Promise<SessionWithUser | null> {
  const found = await findByRefreshToken(ctx, token)
  return found?.user.isActive && isAlive(found.session, ctx.now()) ? found : null
}

/** Moves on what `findLiveTokens` found, where a minute has passed. Null: it has ended since. */
export async function slideTokens(ctx: TokensContext, found: SessionWithUser): Promise<LiveSession | null> {
  const live = await moveOn(ctx, found, ctx.settings.refreshTokenTtlSeconds)
  return live?.user.isActive ? live : null
}

type LiveContext = SessionLookUp & Pick<AuthContext, 'now'>

/** @param idleSeconds from one use to the end */
async function moveOn(ctx: LiveContext, found: SessionWithUser, idleSeconds: number): Promise<LiveSession | null> {
  const isDue = found.user.isActive && ctx.now() >= after(found.session.lastSeenAt, slideAfterSeconds)
  if (!isDue) return { ...found, hasSlid: false }
  const session = await slide(ctx, found.session, idleSeconds)
  if (session) return { session, user: found.user, hasSlid: true }
  // Ended since it was read, which nothing revives; or a request beside this one moved it on, or replaced its token.
  const again = await ctx.sessions.find({ id: found.session.id })
  const isAsked = again?.session.id === found.session.id && again.user.id === found.user.id
  return isAsked && isAlive(again.session, ctx.now()) ? { ...again, hasSlid: false } : null
}

/**
 * Whether the session of a cookie lives on under another value: `/reauthenticate` replaced it while this request was on its way, and the
 * browser has the new one. Without the secret nobody can tell, and the answer is false.
 */
export async function hasNewerToken({ sessions, sessionTokenKeys: keys, now }: LiveContext, token: string): Promise<boolean> {
  const named = keys && readSessionToken(keys, 'session', token)
  const found = named && (await sessions.find({ id: named.id }))
  return found?.session.id === named?.id && found !== null && isAlive(found.session, now()) && found.user.isActive
}

/** Ended ones too. Junk is refused by its MAC, without a query. */
export async function findBySessionCookie(lookUp: SessionLookUp, token: string): Promise<SessionWithUser | null> {
  return findByToken(lookUp, 'session', token)
}

async function findByToken(
  { sessions, sessionTokenKeys: keys }: SessionLookUp,
  kind: SessionKind,
  token: string,
): Promise<SessionWithUser | null> {
  const isPossible = keys ? isOldSessionToken(token) || readSessionToken(keys, kind, token) !== null : hasTokenShape(token)
  if (!isPossible) return null
  const tokenHash = hashOpaqueToken(token)
  const found = await sessions.find({ tokenHash, kind })
  // A store that was given to createGuards() is asked directly, so its answer is compared here.
  const isAsked = found?.session.tokenHash === tokenHash && found.session.kind === kind && found.session.userId === found.user.id
  return isAsked ? found : null
}

/** The session of a refresh token that is valid now, also when it has expired. */
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
