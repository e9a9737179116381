import type { Request } from 'express'
import type { Settings } from '../config/every-setting'
import type { AuthContext } from '../context'
import { readCredential } from '../guards/credentials'
import { findRequestAuth } from '../guards/current-auth'
import { sessionRowOf } from '../guards/session-row'
import { readCookie } from '../http/cookies'
import type { CookieSite } from '../http/doubled-cookies'
import type { KeyList } from '../keys'
import { type AccessTokenClaims, verifyAccessToken } from '../session/access-token'
import { setsTokenCookies } from '../session/delivery'
import { findByRefreshToken, findBySessionCookie, isAlive } from '../session/find-session'
import { readQuietly } from '../session/read-quietly'
import type { SessionRecord, SessionStore, SessionWithUser } from '../store/auth-store'

export interface DeliverySite extends CookieSite {
  readonly settings: CookieSite['settings'] & Pick<Settings, 'tokenDelivery' | 'refreshCookieName' | 'sessionCookieName'>
}

/** What a look for the session of a request needs. */
export interface RequestSessionContext extends DeliverySite {
  readonly sessions: SessionStore
  /** Null: guards without the secret, which ask the database about junk as well. */
  readonly sessionTokenKeys: KeyList | null
}

/**
 * Returns the session of a request where it is alive: the one that the credential names by which a guard let the request in. That is the
 * session cookie, or `sid` of the access token; for a token without `sid`, the session of the refresh cookie or of `refresh_token` in the
 * body, if it belongs to the same account.
 *
 * Where no guard ran, the first credential that the request shows decides: access token, session cookie, refresh cookie or `refresh_token`.
 * @param body the parsed body, where it may name the session
 * @returns null without such a session, and where the store keeps none
 */
export async function findRequestSession(ctx: AuthContext, req: Request, body?: unknown): Promise<SessionRecord | null> {
  const { sessions } = ctx.store
  if (!sessions) return null
  const claims = readClaims(ctx, req)
  const found = await findNamedSession({ ...ctx, sessions, sessionTokenKeys: ctx.keys['session-token'] }, req, claims, body)
  return found?.user.isActive && isAlive(found.session, ctx.now()) ? found.session : null
}

/** The same, also when the session has ended or its account is inactive. `claims`: of the access token, null without one. */
export async function findNamedSession(
  ctx: RequestSessionContext,
  req: Request,
  claims: AccessTokenClaims | null,
  body?: unknown,
): Promise<SessionWithUser | null> {
  const { sessions } = ctx
  if (claims === null) return findByCookie(ctx, req, body)
  const { sid: id } = claims
  const found =
    id === undefined ? await findByToken(ctx, req, body) : (sessionRowOf(req, sessions, { id }) ?? (await sessions.find({ id })))
  return found?.session.userId === claims.sub ? found : null
}

/** Of the guard that let the request in; else of the request itself, where a token that is not valid counts as none. */
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

/** By a refresh token that is good now: one that was used names nothing. */
async function findByToken(ctx: RequestSessionContext, req: Request, body: unknown): Promise<SessionWithUser | null> {
  const token = shownRefreshToken(ctx, req, body)
  return token === null ? null : findByRefreshToken(ctx, token)
}

/** The refresh token that a request shows: in its body, else by cookie where delivery includes cookies. */
export function shownRefreshToken(site: DeliverySite, req: Request, body: unknown): string | null {
  const { settings } = site
  const named: unknown = typeof body === 'object' && body !== null && 'refresh_token' in body ? body.refresh_token : null
  if (typeof named === 'string') return named
  return setsTokenCookies(settings.tokenDelivery) ? readCookie(site, req, settings.refreshCookieName) : null
}
