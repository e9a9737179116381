import { type AuthContext, transaction } from '../context'
import { type AuthMethod, amrFromText, amrToText, noMethods } from '../core/amr'
import { InvalidTokenError } from '../core/errors'
import { hashOpaqueToken } from '../core/opaque-token'
import { endLoginTasks } from '../login-tasks/task-token'
import type { SessionChoice, SessionKind, SessionRecord, SessionStore, SessionWithUser } from '../store/auth-store'
import { type Distrust, distrust } from '../trusted-devices/distrust'
import { type AccessTokenClaims, verifyAccessToken } from './access-token'
import { isOfUser } from './devices/device-cookie'
import { findByRefreshToken, findBySessionCookie, isAlive, readQuietly, readSessionToken, sessionsOf } from './find-session'
import type { Device } from './login'
import { type AskingSession, holdSession } from './reauthentication/fresh-session'
import { type CookieOfRequest, type RenewedCookie, renewCookie } from './reissue-tokens'
import { isStillTrusted, readStatelessToken } from './stateless-refresh-token'

export interface LoggedOut {
  /** The sessions that the logout revoked one by one. Empty if it revoked none, or all sessions of the account. */
  readonly endedIds: readonly string[]
  /** As in the option `providers`. Null: no provider, or unknown. */
  readonly provider: string | null
}

const nothing: LoggedOut = Object.freeze({ endedIds: [], provider: null })

/**
 * Repeatable: an unknown token is no error (RFC 7009 section 2.2), and the token of an ended session revokes nothing. A used token revokes
 * only its own session: an attacker may have it. A stateless token stays valid, because it has no row.
 */
export async function logOut(ctx: AuthContext, refreshToken: string, options: { allSessions?: boolean } = {}): Promise<LoggedOut> {
  return endNamed(ctx, { refreshToken }, options)
}

export async function logOutSession(ctx: AuthContext, sessionToken: string, options: { allSessions?: boolean } = {}): Promise<LoggedOut> {
  sessionsOf(ctx.store)
  return endNamed(ctx, { sessionToken }, options)
}

export interface LogoutTokens {
  /** The newest entry of the device cookie. */
  readonly device?: Device | null
  readonly sessionToken?: string | null
  readonly refreshToken?: string | null
  readonly accessToken?: string | null
}

/** The token's MAC or signature is good. */
interface NamedSession {
  readonly wanted: { readonly id: string }
  readonly names: (session: SessionRecord) => boolean
  /** A used refresh token and an expired access token may not revoke all sessions. */
  readonly mayEndAll?: (session: SessionRecord) => boolean
}

/** `allSessions` acts for the first account only; the device cookie comes first, because a subdomain can plant the others. */
export async function endNamed(ctx: AuthContext, tokens: LogoutTokens, { allSessions = false } = {}): Promise<LoggedOut> {
  const { sessions } = ctx.store
  if (!sessions) return logOutStateless(ctx, tokens.refreshToken ?? null, allSessions)
  const found = await findNamed(ctx, sessions, namedBy(ctx, tokens))
  const [first] = found
  if (!first) return nothing
  const endsAll = allSessions && first.mayEndAll
  if (endsAll) {
    await transaction(ctx, (ctx) => endSessions(ctx, first.session.userId))
    ctx.events.emit('logout', { userId: first.session.userId, allSessions })
  }
  const endedIds: string[] = []
  for (const { session } of found) {
    if (endsAll && session.userId === first.session.userId) continue
    if (!(await sessions.revoke({ id: session.id }, ctx.now()))) continue
    endedIds.push(session.id)
    ctx.events.emit('logout', { userId: session.userId, allSessions: false })
  }
  return { endedIds, provider: first.session.provider }
}

/** One statement for a client above its rate limit. It reads no row, so no event has the user's id. */
export async function endNamedAtOnce(ctx: AuthContext, tokens: LogoutTokens): Promise<LoggedOut> {
  const ids = [...new Set(namedBy(ctx, tokens).map(({ wanted }) => wanted.id))]
  const isEnded = ids.length > 0 && (await ctx.store.sessions?.revoke({ id: ids }, ctx.now()))
  return isEnded ? { endedIds: ids, provider: null } : nothing
}

/** True if we made one of the tokens, even if its session has ended or a logout has emptied the device entry. */
export function isAnyOurs(ctx: AuthContext, tokens: LogoutTokens): boolean {
  const { device = null, refreshToken = null, accessToken = null } = tokens
  if (device !== null || namedBy(ctx, tokens).length > 0 || readSigned(ctx, accessToken) !== null) return true
  return !ctx.store.sessions && refreshToken !== null && readQuietly(() => readStatelessToken(ctx, refreshToken, longAgo)) !== null
}

/** Before any of our tokens expires. Not 0, because jsonwebtoken reads 0 as the current time. */
const longAgo = new Date(1_000)

/** Accepts expired tokens: the person may log out later. */
function readSigned(ctx: AuthContext, token: string | null): AccessTokenClaims | null {
  return token === null ? null : readQuietly(() => verifyAccessToken({ ...ctx, now: () => longAgo }, token))
}

function namedBy(ctx: AuthContext, { device, sessionToken = null, refreshToken = null, accessToken = null }: LogoutTokens): NamedSession[] {
  const keys = ctx.keys['session-token']
  const isCurrent = (token: string) => (session: SessionRecord) => session.tokenHash === hashOpaqueToken(token)
  const byToken = (kind: SessionKind, token: string | null): (NamedSession & { isCurrent: NamedSession['names'] })[] => {
    const named = token === null ? null : readSessionToken(keys, kind, token)
    if (token === null || named === null) return []
    return [{ wanted: { id: named.id }, names: (session) => session.kind === kind, isCurrent: isCurrent(token) }]
  }
  const claims = readSigned(ctx, accessToken)
  // An expired token may come from an old log, so it ends its own session at most.
  const mayEndAll = () => claims !== null && ctx.now().getTime() < claims.exp * 1000
  const ofDevice = device?.sessionId == null ? [] : [{ wanted: { id: device.sessionId }, names: isOwnerOf(ctx, device) }]
  // An old session cookie names no session. A used refresh token still does.
  const ofCookie = byToken('session', sessionToken).map(({ wanted, names, isCurrent }) => ({
    wanted,
    names: (session: SessionRecord) => names(session) && isCurrent(session),
  }))
  const ofRefresh = byToken('tokens', refreshToken).map(({ isCurrent: mayEndAll, ...named }) => ({ ...named, mayEndAll }))
  const { sid, sub } = claims ?? {}
  const ofAccess = sid === undefined ? [] : [{ wanted: { id: sid }, names: (session: SessionRecord) => session.userId === sub, mayEndAll }]
  return [...ofDevice, ...ofCookie, ...ofRefresh, ...ofAccess]
}

function isOwnerOf(ctx: AuthContext, device: Device) {
  return ({ userId }: SessionRecord) => isOfUser(ctx, device, userId)
}

async function findNamed(ctx: AuthContext, sessions: SessionStore, named: readonly NamedSession[]) {
  const rows = new Map<string, SessionWithUser | null>()
  const found = new Map<string, { session: SessionRecord; mayEndAll: boolean }>()
  for (const { wanted, names, mayEndAll = () => true } of named) {
    if (!rows.has(wanted.id)) rows.set(wanted.id, await sessions.find(wanted))
    const session = rows.get(wanted.id)?.session
    if (!session || !names(session) || !isAlive(session, ctx.now()) || found.has(session.id)) continue
    found.set(session.id, { session, mayEndAll: mayEndAll(session) })
  }
  return [...found.values()]
}

async function logOutStateless(ctx: AuthContext, presented: string | null, allSessions: boolean): Promise<LoggedOut> {
  const userId = presented === null ? null : await ownerOfStateless(ctx, presented)
  if (userId !== null) ctx.events.emit('logout', { userId, allSessions })
  return nothing
}

async function ownerOfStateless(ctx: AuthContext, presented: string): Promise<string | null> {
  try {
    const session = readStatelessToken(ctx, presented, ctx.now())
    const user = await ctx.store.users.find(session.userId)
    return user && isStillTrusted(ctx, session, user) ? user.id : null
  } catch (error) {
    if (error instanceof InvalidTokenError) return null
    throw error
  }
}

/** Call it inside a transaction. Locks the user's row first, like every login. */
async function endSessions(ctx: AuthContext, userId: string): Promise<void> {
  await ctx.store.users.lock(userId)
  await endOtherSessions(ctx, userId, {}, { reason: 'session_ended' })
}

/** The first member that names a live session decides. */
export interface KeptSession {
  refreshToken?: string | undefined
  /** The id of a server-side session, as in lists and in `getSession(req)`. */
  sessionId?: string | undefined
  /** The value of a session cookie. */
  sessionToken?: string | undefined
}

/** One of the other sessions may have started them, so `endOtherSessions` revokes them too. */
const openRequests = ['EMAIL_CHANGE', 'LINK_TICKET', 'REAUTH_TICKET', 'OAUTH_CODE'] as const

/**
 * Call it inside a transaction that has locked the user's row. Also ends `openRequests`, and the trust in browsers.
 * @param untrusted which browsers, and why. Default: all, because the account changed
 * @returns the id of the kept session
 */
export async function endOtherSessions(
  ctx: AuthContext,
  userId: string,
  keep: KeptSession = {},
  untrusted: Distrust = { reason: 'account_changed' },
): Promise<string | null> {
  await ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), openRequests)
  await distrust(ctx, userId, untrusted)
  await endLoginTasks(ctx, userId)
  const { sessions } = ctx.store
  if (!sessions) return null
  const exceptId = await keptSessionId(ctx, sessions, userId, keep)
  await sessions.revokeForUser(userId, ctx.now(), exceptId === null ? {} : { exceptId })
  return exceptId
}

/** An old token cannot name the session to keep: an attacker may have it. */
async function keptSessionId(ctx: AuthContext, sessions: SessionStore, userId: string, keep: KeptSession): Promise<string | null> {
  const { refreshToken, sessionId, sessionToken } = keep
  const lookUp = { sessions, sessionTokenKeys: ctx.keys['session-token'] }
  const shown = [
    () => (refreshToken === undefined ? null : findByRefreshToken(lookUp, refreshToken)),
    () => (sessionId === undefined ? null : sessions.find({ id: sessionId })),
    () => (sessionToken === undefined ? null : findBySessionCookie(lookUp, sessionToken)),
  ]
  for (const find of shown) {
    const found = await find()
    if (found?.session.userId === userId && isAlive(found.session, ctx.now())) return found.session.id
  }
  return null
}

/**
 * Also ends app logins before their exchange and logins that still owe tasks, which may have used the removed credential. Call it inside a
 * transaction that has locked the user's row.
 * @param kept the session of the request; null if the call has no session
 */
export async function endSessionsOpenedBy(
  ctx: AuthContext,
  userId: string,
  openedBy: Pick<SessionChoice, 'amr' | 'provider'>,
  kept: Pick<SessionRecord, 'id'> | null,
): Promise<number> {
  await ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), 'OAUTH_CODE')
  await endLoginTasks(ctx, userId)
  return (await ctx.store.sessions?.revokeForUser(userId, ctx.now(), { ...openedBy, ...(kept && { exceptId: kept.id }) })) ?? 0
}

/** Call it after the commit. */
export function announceEnded({ events }: AuthContext, userId: string, count: number): void {
  if (count > 0) events.emit('session.revoked', { userId, count })
}

export async function forgetMethod(ctx: AuthContext, { id, amr: known }: SessionRecord, method: AuthMethod): Promise<void> {
  const amr = amrFromText(known).filter((one) => one !== method)
  await ctx.store.sessions?.update(id, { amr: amrToText(amr) || noMethods })
}

/**
 * Also invalidates what the revoked sessions began: changes of the address, and tickets.
 * @param session stays live; if it has ended meanwhile, nothing is revoked (InvalidTokenError)
 * @param cookie of the request; gets a new value
 * @param keptTrust the hash of the trust of the request's browser
 */
export async function revokeOtherSessions(
  ctx: AuthContext,
  session: AskingSession,
  cookie: CookieOfRequest | null = null,
  keptTrust: string | null = null,
): Promise<{ count: number; cookie: RenewedCookie | null }> {
  const { userId } = session
  const revoked = await transaction(ctx, async (ctx) => {
    await ctx.store.users.lock(userId)
    const held = await holdSession(ctx, session)
    const living = await sessionsOf(ctx.store).listForUser(userId, ctx.now())
    const untrusted = { reason: 'session_ended', ...(keptTrust !== null && { exceptTokenHash: keptTrust }) } as const
    await endOtherSessions(ctx, userId, { sessionId: session.id }, untrusted)
    return { count: living.length - 1, cookie: await renewCookie(ctx, held, cookie) }
  })
  ctx.events.emit('session.revoked', { userId, count: revoked.count })
  return revoked
}
