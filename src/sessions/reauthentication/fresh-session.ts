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
import { isSuperseded, refuseEarlierAccount } from '../superseded-token'
import { hasYoungFactor, type MethodContext, methodsOf } from './methods'
import { findActiveUser, findNamedSession } from './request-session'

export interface SessionOfRequest {
  /** Null if the store keeps no sessions. */
  readonly session: SessionRecord | null
  readonly user: UserRecord
  /** Seconds since the last authentication that counts. Null if none counts. */
  readonly ageSeconds: number | null
}

const found = new WeakMap<Request, SessionOfRequest>()

/** A guard must run before. Without a session table, the token must be newer than the last change of the ways to log in. */
export function aliveSession(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    await requireAlive(ctx, req, res)
  })
  return describeStep(check, { refuses: aliveRefusals(ctx), needs: 'alive_session' })
}

/**
 * Requires an authentication within `freshSessionSeconds` (0: any live session). A guard must run before. The token's own `auth_time`
 * counts: a stolen older token does not become fresh when the owner logs in again. Place other middlewares that answer 403 between
 * `aliveSession` and this middleware.
 */
export function freshSession(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    await refuseStale(ctx, await requireAlive(ctx, req, res), ctx.settings.freshSessionSeconds)
  })
  return describeStep(check, { refuses: [...aliveRefusals(ctx), ReauthenticationRequiredError], needs: 'fresh_session' })
}

/** An attacker with a stolen token could have added a young factor: authenticate again after it. Runs after `freshSession`. */
export function freshSinceFactor(ctx: AuthContext): RequestHandler {
  const check = step((req) => refuseStale(ctx, sinceFactor(ctx, requestSessionOf(req)), ctx.settings.freshSessionSeconds))
  return describeStep(check, { refuses: [ReauthenticationRequiredError] })
}

/** If the person authenticated before a young second factor was added, the age is null. */
export function sinceFactor(ctx: Pick<MethodContext, 'now' | 'settings'>, found: SessionOfRequest): SessionOfRequest {
  const { totpEnabledAt } = found.user
  if (!totpEnabledAt || !hasYoungFactor(ctx, found.user)) return found
  const factorSeconds = Math.floor((ctx.now().getTime() - totpEnabledAt.getTime()) / 1000)
  return found.ageSeconds !== null && found.ageSeconds < factorSeconds ? found : { ...found, ageSeconds: null }
}

function aliveRefusals({ settings }: AuthContext): Refusal[] {
  const refusals = [UnauthorizedError, InvalidTokenError, AccountInactiveError]
  return settings.accessTokenSessionClaims ? refusals : [...refusals, ReauthenticationRequiredError]
}

/** Null if the store keeps no sessions. `aliveSession` or `freshSession` must run before. */
export function sessionOf(req: Request): SessionRecord | null {
  return requestSessionOf(req).session
}

export function requestSessionOf(req: Request): SessionOfRequest {
  const known = found.get(req)
  if (!known) throw new Error('sessionOf(req) needs aliveSession() or freshSession() before the handler')
  return known
}

export type AskingSession = Pick<SessionRecord, 'id' | 'userId'> & Partial<Pick<SessionRecord, 'kind' | 'tokenHash'>>

/** Call it with the user's row locked. @throws InvalidTokenError also for a replaced cookie: a copy must not get the next value */
export async function holdSession(ctx: AuthContext, session: AskingSession | null | undefined): Promise<SessionRecord | null> {
  if (!session) return null
  const held = await sessionsOf(ctx.store).lock(session.id, ctx.now())
  const isReplaced = session.kind === 'session' && session.tokenHash !== undefined && session.tokenHash !== held?.tokenHash
  if (held?.userId !== session.userId || isReplaced) throw new InvalidTokenError()
  return held
}

/** Like `holdSession`, for work after the response, which cannot report an error. */
export async function isSessionHeld(ctx: AuthContext, session: SessionRecord | null | undefined): Promise<boolean> {
  return !session || (await sessionsOf(ctx.store).lock(session.id, ctx.now()))?.userId === session.userId
}

export async function refuseStale(ctx: MethodContext, { user, ageSeconds }: SessionOfRequest, maxAgeSeconds: number): Promise<void> {
  if (!isFresh({ ageSeconds }, maxAgeSeconds)) throw await reauthenticationRequired(ctx, user, maxAgeSeconds)
}

export async function reauthenticationRequired(
  ctx: MethodContext,
  user: UserRecord,
  maxAgeSeconds = ctx.settings.freshSessionSeconds,
): Promise<ReauthenticationRequiredError> {
  return new ReauthenticationRequiredError({ details: { methods: await methodsOf(ctx, user) }, maxAgeSeconds })
}

/** Without `auth_time` in tokens, only a session that gets a new refresh token becomes fresh. @throws ReauthenticationRequiredError */
export async function requireNewToken(
  ctx: MethodContext & { readonly settings: Pick<AuthContext['settings'], 'accessTokenSessionClaims'> },
  { user, session, refreshToken }: { user: UserRecord; session: SessionRecord | null; refreshToken: string | null },
): Promise<void> {
  if (ctx.settings.accessTokenSessionClaims || session?.kind !== 'tokens' || isLiveToken(session, refreshToken)) return
  throw await reauthenticationRequired(ctx, user)
}

export function isFresh({ ageSeconds }: Pick<SessionOfRequest, 'ageSeconds'>, maxAgeSeconds: number): boolean {
  return maxAgeSeconds === 0 || (ageSeconds !== null && ageSeconds <= maxAgeSeconds)
}

/** Later middlewares of the request share the result. */
async function requireAlive(ctx: AuthContext, req: Request, res: Response): Promise<SessionOfRequest> {
  const known = found.get(req) ?? (await findAlive(ctx, req, res))
  found.set(req, known)
  return known
}

async function findAlive(ctx: AuthContext, req: Request, res: Response): Promise<SessionOfRequest> {
  const claims = findAuth(req)
  const { sessions } = ctx.store
  if (!sessions) return findStateless(ctx, claims)
  // A token without `sid` does not identify its session. `refresh_token` in the body can.
  const body = claims !== null && claims.sid === undefined ? await readJsonBody(req, res) : undefined
  const named = await findNamedSession({ ...ctx, sessions, sessionTokenKeys: ctx.keys['session-token'] }, req, claims, body)
  if (!named) {
    const user = await findActiveUser(ctx, findSubject(req) ?? '') // throws if the account was deleted
    if (claims) refuseEarlierAccount(claims, user)
    await refuseUnnamed(ctx, claims, user)
  }
  if (named && !named.user.isActive) throw new AccountInactiveError()
  if (!named || !isAlive(named.session, ctx.now())) throw new InvalidTokenError()
  return { session: named.session, user: named.user, ageSeconds: ageOf(ctx.now(), claims, named) }
}

/** No 401: the client would refresh again and again, and the new token has no `sid` either. */
export async function refuseUnnamed(ctx: MethodContext, claims: AccessTokenClaims | null, user: UserRecord): Promise<void> {
  if (claims !== null && claims.sid === undefined) throw await reauthenticationRequired(ctx, user)
}

/** A stateless refresh token has no row, so only the access token can be checked. */
async function findStateless(ctx: AuthContext, claims: AccessTokenClaims | null): Promise<SessionOfRequest> {
  if (!claims) throw new InvalidTokenError()
  const user = await findActiveUser(ctx, claims.sub)
  refuseEarlierAccount(claims, user)
  if (isSuperseded(ctx, claims, user)) throw new InvalidTokenError()
  return { session: null, user, ageSeconds: ageOf(ctx.now(), claims, null) }
}

/**
 * Seconds since the token's `auth_time`, or since the time in the session's row for a cookie or a token without `auth_time`. A token older
 * than that time has no age: a copy must not become fresh when the owner confirms the session. If only the device cookie names the session,
 * its entry must have that time too: the token may be of another session.
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
