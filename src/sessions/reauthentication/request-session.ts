import type { Request } from 'express'
import type { AuthContext } from '../../context'
import type { Settings } from '../../core/config/every-setting'
import { AccountInactiveError, UnauthorizedError } from '../../core/errors'
import type { KeyList } from '../../core/keys'
import { type CookieSite, readCookie } from '../../http/cookies'
import { readRefreshTokenHeader } from '../../http/input'
import type { SessionRecord, SessionStore, SessionWithUser, UserRecord } from '../../store/auth-store'
import { type AccessTokenClaims, verifyAccessToken } from '../access-token'
import { findRequestAuth, readCredential } from '../current-auth'
import { setsTokenCookies } from '../delivery'
import { type DeviceReadContext, findSessionOfDevice, type SessionOfDevice } from '../devices/device-cookie'
import { findByRefreshToken, findBySessionCookie, isAlive, readQuietly, sessionRowOf } from '../find-session'

interface DeliverySite extends CookieSite {
  readonly settings: CookieSite['settings'] &
    Pick<Settings, 'tokenDelivery' | 'refreshCookieName' | 'sessionCookieName' | 'cookieDomain' | 'cookieSecure'>
}

interface RequestSessionContext extends DeliverySite, Pick<DeviceReadContext, 'now'> {
  readonly sessions: SessionStore
  /** Null for guards without the secret, which cannot read the device cookie. */
  readonly keys: DeviceReadContext['keys'] | null
  /** Null for guards without the secret, which query the database even for malformed tokens. */
  readonly sessionTokenKeys: KeyList | null
}

/** `confirmedAt` is there only if nothing but the device cookie names the session. */
export type NamedSession = SessionWithUser & Partial<Pick<SessionOfDevice, 'confirmedAt'>>

/**
 * The live session of the credential that the guard accepted: the session cookie, or the `sid` of the access token. Without `sid`:
 * `refresh_token` in the body, `X-Refresh-Token`, the refresh cookie, or the device cookie, for the token's account only. If no guard ran,
 * the first of access token, session cookie and refresh token decides.
 * @param body the parsed body, if the body may identify the session
 */
export async function findRequestSession(ctx: AuthContext, req: Request, body?: unknown): Promise<SessionRecord | null> {
  const { sessions } = ctx.store
  if (!sessions) return null
  const claims = readClaims(ctx, req)
  const found = await findNamedSession({ ...ctx, sessions, sessionTokenKeys: ctx.keys['session-token'] }, req, claims, body)
  return found?.user.isActive && isAlive(found.session, ctx.now()) ? found.session : null
}

/** Like `findRequestSession`, but also an ended session, and one of an inactive account. */
export async function findNamedSession(
  ctx: RequestSessionContext,
  req: Request,
  claims: AccessTokenClaims | null,
  body?: unknown,
): Promise<NamedSession | null> {
  const { sessions } = ctx
  if (claims === null) return findByCookie(ctx, req, body)
  const { sid: id, sub } = claims
  const found = id === undefined ? null : (sessionRowOf(req, sessions, { id }) ?? (await sessions.find({ id })))
  const named = id === undefined ? await findByToken(ctx, req, body) : found
  if (named?.session.userId === sub) return named
  return id === undefined ? findByDevice(ctx, req, sub) : null
}

async function findByDevice(ctx: RequestSessionContext, req: Request, userId: string): Promise<SessionOfDevice | null> {
  const { keys, sessions, settings } = ctx
  return keys === null || settings.tokenDelivery === 'bearer' ? null : findSessionOfDevice({ ...ctx, keys }, sessions, req, userId)
}

/** If no guard ran, the access token of the request itself. An invalid token counts as no token. */
function readClaims(ctx: AuthContext, req: Request): AccessTokenClaims | null {
  const auth = findRequestAuth(req)
  if (auth) return auth.claims
  return readQuietly(() => {
    const credential = readCredential(ctx, req)
    return credential && verifyAccessToken(ctx, credential.token)
  })
}

async function findByCookie(ctx: RequestSessionContext, req: Request, body: unknown): Promise<SessionWithUser | null> {
  const guarded = findRequestAuth(req)?.session
  if (guarded) return ctx.sessions.find({ id: guarded.id })
  const cookie = readCookie(ctx, req, ctx.settings.sessionCookieName)
  const found = cookie === null ? null : await findBySessionCookie(ctx, cookie)
  return found ?? findByToken(ctx, req, body)
}

/** A used token identifies no session. */
async function findByToken(ctx: RequestSessionContext, req: Request, body: unknown): Promise<SessionWithUser | null> {
  const token = presentedRefreshToken(ctx, req, body)
  return token === null ? null : findByRefreshToken(ctx, token)
}

/** From the body, else the header `X-Refresh-Token`, else the cookie if `tokenDelivery` has cookies. */
function presentedRefreshToken(site: DeliverySite, req: Request, body: unknown): string | null {
  const { settings } = site
  const named: unknown = typeof body === 'object' && body !== null && 'refresh_token' in body ? body.refresh_token : null
  const given = typeof named === 'string' ? named : readRefreshTokenHeader(req)
  if (given !== null) return given
  return setsTokenCookies(settings.tokenDelivery) ? readCookie(site, req, settings.refreshCookieName) : null
}

export async function findActiveUser(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.find(userId)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  return user
}
