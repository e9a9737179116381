import type { Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError, ReauthenticationRequiredError, UnauthorizedError } from '../errors'
import { findAuth, findSubject } from '../guards/current-auth'
import { describeStep } from '../http/description'
import { readJsonBody } from '../http/json-body'
import { step } from '../http/routes'
import type { AccessTokenClaims } from '../session/access-token'
import { isAlive, sessionsOf } from '../session/find-session'
import { isSuperseded } from '../session/superseded-token'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { findActiveUser } from './find-active-user'
import { type MethodContext, methodsOf } from './methods'
import { findNamedSession } from './request-session'
import { hasYoungFactor } from './young-credential'

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
  return describeStep(check, { refuses: aliveRefusals, needs: 'alive_session' })
}

/**
 * Returns a middleware that requires a live and fresh session. A session is fresh if the person authenticated within `freshSessionSeconds`.
 * A guard must run before this middleware. If the session is not fresh, the middleware answers 403 REAUTHENTICATION_REQUIRED.
 *
 * The `auth_time` of an access token counts. So a stolen older token does not become fresh when the owner logs in again. Place other
 * middlewares that answer 403 between `aliveSession` and this middleware.
 */
export function freshSession(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    await refuseStale(ctx, await requireAlive(ctx, req, res), ctx.settings.freshSessionSeconds)
  })
  return describeStep(check, { refuses: [...aliveRefusals, ReauthenticationRequiredError], needs: 'fresh_session' })
}

/**
 * Returns a middleware for accounts whose second factor is younger than 24 hours: the person must have authenticated again since the factor
 * was added, because an attacker with a stolen access token could have added the factor. The middleware runs after `freshSession`.
 */
export function freshSinceFactor(ctx: AuthContext): RequestHandler {
  const check = step((req) => refuseStale(ctx, sinceFactor(ctx, requestSessionOf(req)), ctx.settings.freshSessionSeconds))
  return describeStep(check, { refuses: [ReauthenticationRequiredError] })
}

/**
 * Returns the session. If the second factor is younger than 24 hours, and the person authenticated before the factor was added, its age is
 * null.
 */
export function sinceFactor(ctx: Pick<MethodContext, 'now'>, found: SessionOfRequest): SessionOfRequest {
  const { totpEnabledAt } = found.user
  if (!totpEnabledAt || !hasYoungFactor(ctx, found.user)) return found
  const factorSeconds = Math.floor((ctx.now().getTime() - totpEnabledAt.getTime()) / 1000)
  return found.ageSeconds !== null && found.ageSeconds < factorSeconds ? found : { ...found, ageSeconds: null }
}

const aliveRefusals = [UnauthorizedError, InvalidTokenError, AccountInactiveError]

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

/**
 * Locks the session again. Call the function inside a transaction that has locked the user's row. Does nothing for a caller without a
 * session.
 * @throws InvalidTokenError if the session has ended meanwhile
 */
export async function holdSession(
  ctx: AuthContext,
  session: Pick<SessionRecord, 'id' | 'userId'> | null | undefined,
): Promise<SessionRecord | null> {
  if (!session) return null
  const held = await sessionsOf(ctx.store).lock(session.id, ctx.now())
  if (held?.userId !== session.userId) throw new InvalidTokenError()
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
  if (ageSeconds !== null && ageSeconds <= maxAgeSeconds) return
  throw new ReauthenticationRequiredError({ details: { methods: await methodsOf(ctx, user) }, maxAgeSeconds })
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
  if (!named) await findActiveUser(ctx, findSubject(req) ?? '') // throws if the account was deleted
  if (named && !named.user.isActive) throw new AccountInactiveError()
  if (!named || !isAlive(named.session, ctx.now())) throw new InvalidTokenError()
  return { ...named, ageSeconds: ageOf(ctx.now(), claims, named.session) }
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
 * the age comes from the session's row.
 */
export function ageOf(now: Date, claims: AccessTokenClaims | null, session: Pick<SessionRecord, 'authenticatedAt'> | null): number | null {
  if (claims?.auth_time !== undefined) return claims.auth_time === 0 ? null : Math.floor(now.getTime() / 1000) - claims.auth_time
  const at = session?.authenticatedAt ?? null
  return at === null ? null : (now.getTime() - at.getTime()) / 1000
}
