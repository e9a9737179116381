import type { Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../../context'
import { AccountInactiveError, InvalidTokenError, ReauthenticationRequiredError, UnauthorizedError } from '../../core/errors'
import { describeStep, type Refusal } from '../../http/description'
import { readJsonBody } from '../../http/input'
import { step } from '../../http/routes'
import type { SessionRecord, UserRecord } from '../../store/auth-store'
import { type AccessTokenClaims, authTimeOf } from '../access-token'
import { findAuth, findSubject } from '../current-auth'
import { isAlive, sessionsOf } from '../find-session'
import { isLiveToken } from '../reissue-tokens'
import { isSuperseded } from '../superseded-token'
import { hasYoungFactor, type MethodContext, methodsOf } from './methods'
import { findActiveUser, findNamedSession } from './request-session'

/** The session and the user of a request, and how long ago the person authenticated. */
export interface SessionOfRequest {
  /** Null if the store keeps no sessions. */
  readonly session: SessionRecord | null
  readonly user: UserRecord
  /** The seconds since the last authentication that counts. Null if no authentication counts. */
  readonly ageSeconds: number | null
}

const found = new WeakMap<Request, SessionOfRequest>()

/**
 * Returns a middleware that requires a live session (`findRequestSession`). A guard must run before this middleware. If the session is not
 * live, the middleware answers 401 INVALID_TOKEN. Without a session table, the token must be newer than the last change of the ways to log
 * in.
 */
export function aliveSession(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    await requireAlive(ctx, req, res)
  })
  return describeStep(check, { refuses: aliveRefusals(ctx), needs: 'alive_session' })
}

/**
 * Returns a middleware that requires a live and fresh session. A session is fresh if the person authenticated within `freshSessionSeconds`.
 * A guard must run before this middleware. If the session is not fresh, the middleware answers 403 REAUTHENTICATION_REQUIRED. With
 * `freshSessionSeconds: 0`, every live session is fresh.
 *
 * The `auth_time` of an access token counts. So a stolen older token does not become fresh when the owner logs in again. Place other
 * middlewares that answer 403 between `aliveSession` and this middleware.
 */
export function freshSession(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    await refuseStale(ctx, await requireAlive(ctx, req, res), ctx.settings.freshSessionSeconds)
  })
  return describeStep(check, { refuses: [...aliveRefusals(ctx), ReauthenticationRequiredError], needs: 'fresh_session' })
}

/**
 * Returns a middleware for accounts whose second factor is young (`youngCredentialSeconds`): the person must have authenticated again since
 * the factor was added, because an attacker with a stolen access token could have added the factor. The middleware runs after
 * `freshSession`.
 */
export function freshSinceFactor(ctx: AuthContext): RequestHandler {
  const check = step((req) => refuseStale(ctx, sinceFactor(ctx, requestSessionOf(req)), ctx.settings.freshSessionSeconds))
  return describeStep(check, { refuses: [ReauthenticationRequiredError] })
}

/**
 * Returns the session. If the second factor is young, and the person authenticated before the factor was added, its age is
 * null.
 */
export function sinceFactor(ctx: Pick<MethodContext, 'now' | 'settings'>, found: SessionOfRequest): SessionOfRequest {
  const { totpEnabledAt } = found.user
  if (!totpEnabledAt || !hasYoungFactor(ctx, found.user)) return found
  const factorSeconds = Math.floor((ctx.now().getTime() - totpEnabledAt.getTime()) / 1000)
  return found.ageSeconds !== null && found.ageSeconds < factorSeconds ? found : { ...found, ageSeconds: null }
}

/** Without `sid` in access tokens, a request may name no session at all (`refuseUnnamed`). */
function aliveRefusals({ settings }: AuthContext): Refusal[] {
  const refusals = [UnauthorizedError, InvalidTokenError, AccountInactiveError]
  return settings.accessTokenSessionClaims ? refusals : [...refusals, ReauthenticationRequiredError]
}

/**
 * Returns the session that `aliveSession` or `freshSession` found. Returns null if the store keeps no sessions.
 * @throws Error if neither middleware ran
 */
export function sessionOf(req: Request): SessionRecord | null {
  return requestSessionOf(req).session
}

/**
 * Returns the session and the user, in the state that `aliveSession` or `freshSession` read from the database.
 * @throws Error if neither middleware ran
 */
export function requestSessionOf(req: Request): SessionOfRequest {
  const known = found.get(req)
  if (!known) throw new Error('sessionOf(req) needs aliveSession() or freshSession() before the handler')
  return known
}

/** The session of a request, as a guard read it. */
export type AskingSession = Pick<SessionRecord, 'id' | 'userId'> & Partial<Pick<SessionRecord, 'kind' | 'tokenHash'>>

/**
 * Locks the session again. Call the function inside a transaction that has locked the user's row. Does nothing for a caller without a
 * session.
 * @throws InvalidTokenError if the session has ended meanwhile, or if the session cookie of the request has been replaced: a copy of an old
 *   cookie must not get the next value
 */
export async function holdSession(ctx: AuthContext, session: AskingSession | null | undefined): Promise<SessionRecord | null> {
  if (!session) return null
  const held = await sessionsOf(ctx.store).lock(session.id, ctx.now())
  const isReplaced = session.kind === 'session' && session.tokenHash !== undefined && session.tokenHash !== held?.tokenHash
  if (held?.userId !== session.userId || isReplaced) throw new InvalidTokenError()
  return held
}

/**
 * Like `holdSession`, for work after the response. That work cannot report an error, so the function returns false if the session has
 * ended.
 */
export async function isSessionHeld(ctx: AuthContext, session: SessionRecord | null | undefined): Promise<boolean> {
  return !session || (await sessionsOf(ctx.store).lock(session.id, ctx.now()))?.userId === session.userId
}

/**
 * Rejects a session that is too old.
 * @throws ReauthenticationRequiredError, which lists the ways to make the session fresh
 */
export async function refuseStale(ctx: MethodContext, { user, ageSeconds }: SessionOfRequest, maxAgeSeconds: number): Promise<void> {
  if (!isFresh({ ageSeconds }, maxAgeSeconds)) throw await reauthenticationRequired(ctx, user, maxAgeSeconds)
}

/** Returns the error that lists the ways to make a session of this account fresh. */
export async function reauthenticationRequired(
  ctx: MethodContext,
  user: UserRecord,
  maxAgeSeconds = ctx.settings.freshSessionSeconds,
): Promise<ReauthenticationRequiredError> {
  return new ReauthenticationRequiredError({ details: { methods: await methodsOf(ctx, user) }, maxAgeSeconds })
}

/**
 * Rejects a reauthentication that could make nothing fresh. With `accessTokenSessionClaims: false` an access token has no `auth_time`, and
 * the row of a session becomes fresh only together with a new refresh token.
 * @throws ReauthenticationRequiredError
 */
export async function requireNewToken(
  ctx: MethodContext & { readonly settings: Pick<AuthContext['settings'], 'accessTokenSessionClaims'> },
  { user, session, refreshToken }: { user: UserRecord; session: SessionRecord | null; refreshToken: string | null },
): Promise<void> {
  if (ctx.settings.accessTokenSessionClaims || session?.kind !== 'tokens' || isLiveToken(session, refreshToken)) return
  throw await reauthenticationRequired(ctx, user)
}

/** Returns true if the session is fresh. The setting `freshSessionSeconds: 0` makes every live session fresh. */
export function isFresh({ ageSeconds }: Pick<SessionOfRequest, 'ageSeconds'>, maxAgeSeconds: number): boolean {
  return maxAgeSeconds === 0 || (ageSeconds !== null && ageSeconds <= maxAgeSeconds)
}

/** Looks the session up once for each request. Later middlewares of the request share the result. */
async function requireAlive(ctx: AuthContext, req: Request, res: Response): Promise<SessionOfRequest> {
  const known = found.get(req) ?? (await findAlive(ctx, req, res))
  found.set(req, known)
  return known
}

async function findAlive(ctx: AuthContext, req: Request, res: Response): Promise<SessionOfRequest> {
  const claims = findAuth(req)
  const { sessions } = ctx.store
  if (!sessions) return findStateless(ctx, claims)
  // A token without `sid` does not identify its session. In that case `refresh_token` in the body can identify the session.
  const body = claims !== null && claims.sid === undefined ? await readJsonBody(req, res) : undefined
  const named = await findNamedSession({ ...ctx, sessions, sessionTokenKeys: ctx.keys['session-token'] }, req, claims, body)
  if (!named) await refuseUnnamed(ctx, claims, await findActiveUser(ctx, findSubject(req) ?? '')) // throws if the account was deleted
  if (named && !named.user.isActive) throw new AccountInactiveError()
  if (!named || !isAlive(named.session, ctx.now())) throw new InvalidTokenError()
  return { session: named.session, user: named.user, ageSeconds: ageOf(ctx.now(), claims, named) }
}

/**
 * Rejects a request with a token without `sid`, if nothing else names its session. The answer is no 401, because a client would then
 * refresh its tokens again and again, and the new token has no `sid` either.
 * @throws ReauthenticationRequiredError
 */
export async function refuseUnnamed(ctx: MethodContext, claims: AccessTokenClaims | null, user: UserRecord): Promise<void> {
  if (claims !== null && claims.sid === undefined) throw await reauthenticationRequired(ctx, user)
}

/** Returns the user of an access token. A stateless refresh token has no row, so the function can check only the access token. */
async function findStateless(ctx: AuthContext, claims: AccessTokenClaims | null): Promise<SessionOfRequest> {
  if (!claims) throw new InvalidTokenError()
  const user = await findActiveUser(ctx, claims.sub)
  if (isSuperseded(ctx, claims, user)) throw new InvalidTokenError()
  return { session: null, user, ageSeconds: ageOf(ctx.now(), claims, null) }
}

/**
 * Returns the age in seconds. The age comes from the token's `auth_time`, in whole seconds. For a cookie, or a token without `auth_time`,
 * the age comes from the session's row. A token that is older than that time has no age, because a copy of a token must not become fresh
 * when the owner confirms the session. Where only the device cookie names the session, the token has to come with an entry of that time,
 * because the token may be one of another session of the account.
 */
export function ageOf(
  now: Date,
  claims: AccessTokenClaims | null,
  named: { readonly session: Pick<SessionRecord, 'authenticatedAt'>; readonly confirmedAt?: number } | null,
): number | null {
  if (claims?.auth_time !== undefined) return claims.auth_time === 0 ? null : Math.floor(now.getTime() / 1000) - claims.auth_time
  const at = named?.session.authenticatedAt ?? null
  if (at === null || (claims !== null && claims.iat < authTimeOf(at))) return null
  if (named?.confirmedAt !== undefined && !(named.confirmedAt >= at.getTime())) return null
  return (now.getTime() - at.getTime()) / 1000
}
