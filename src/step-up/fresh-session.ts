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

/** Who asks, in which session, and how long ago the person last showed a credential. */
export interface SessionOfRequest {
  /** Null: the store keeps no sessions. */
  readonly session: SessionRecord | null
  readonly user: UserRecord
  /** Null: never in a way that counts. */
  readonly ageSeconds: number | null
}

const found = new WeakMap<Request, SessionOfRequest>()

/**
 * A step behind a guard: the session of the request (`findRequestSession`) has not ended, else 401 INVALID_TOKEN. Without a table of
 * sessions nobody can say that one has ended: then the token has to be younger than the last change of what lets people in.
 */
export function aliveSession(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    await requireAlive(ctx, req, res)
  })
  return describeStep(check, { refuses: aliveRefusals, needs: 'alive_session' })
}

/**
 * A step behind a guard: the session of the request is alive, and its person showed a credential within `freshSessionSeconds`. An access
 * token is judged by its own `auth_time`, so that nobody who holds an older one profits from the owner's sign-in. Else 403
 * REAUTHENTICATION_REQUIRED. Put what else refuses with 403 between `aliveSession` and this step.
 */
export function freshSession(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    await refuseStale(ctx, await requireAlive(ctx, req, res), ctx.settings.freshSessionSeconds)
  })
  return describeStep(check, { refuses: [...aliveRefusals, ReauthenticationRequiredError], needs: 'fresh_session' })
}

/**
 * For use behind `freshSession`, on requests that need the second factor. A factor younger than 24 hours counts only with a credential
 * that was shown after it, because an attacker with a stolen access token could have added it.
 */
export function freshSinceFactor(ctx: AuthContext): RequestHandler {
  const check = step((req) => refuseStale(ctx, sinceFactor(ctx, requestSessionOf(req)), ctx.settings.freshSessionSeconds))
  return describeStep(check, { refuses: [ReauthenticationRequiredError] })
}

/** As old as it is; of no age that counts where the second factor is young, and no credential was shown after it. */
export function sinceFactor(ctx: Pick<MethodContext, 'now'>, found: SessionOfRequest): SessionOfRequest {
  const { totpEnabledAt } = found.user
  if (!totpEnabledAt || !hasYoungFactor(ctx, found.user)) return found
  const factorSeconds = Math.floor((ctx.now().getTime() - totpEnabledAt.getTime()) / 1000)
  return found.ageSeconds !== null && found.ageSeconds < factorSeconds ? found : { ...found, ageSeconds: null }
}

const aliveRefusals = [UnauthorizedError, InvalidTokenError, AccountInactiveError]

/** The session that one of the two steps found; null where the store keeps none. @throws Error where none of them ran */
export function sessionOf(req: Request): SessionRecord | null {
  return requestSessionOf(req).session
}

/** The same with the user as the database had it at that moment. @throws Error where none of the two steps ran */
export function requestSessionOf(req: Request): SessionOfRequest {
  const known = found.get(req)
  if (!known) throw new Error('sessionOf(req) needs aliveSession() or freshSession() before the handler')
  return known
}

/**
 * Asks again inside a unit of work that has locked the user's row: locks the session and throws where it has ended meanwhile. Does
 * nothing for a caller without a session.
 * @throws InvalidTokenError
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

/** The same for work after the answer, which has nobody to tell: false where the session has ended meanwhile. */
export async function isSessionHeld(ctx: AuthContext, session: SessionRecord | null | undefined): Promise<boolean> {
  return !session || (await sessionsOf(ctx.store).lock(session.id, ctx.now()))?.userId === session.userId
}

/** @throws ReauthenticationRequiredError, which says how to make the session fresh */
export async function refuseStale(ctx: MethodContext, { user, ageSeconds }: SessionOfRequest, maxAgeSeconds: number): Promise<void> {
  if (ageSeconds !== null && ageSeconds <= maxAgeSeconds) return
  throw new ReauthenticationRequiredError({ details: { methods: await methodsOf(ctx, user) }, maxAgeSeconds })
}

/** Once a request: the steps behind one another share what the first one found. */
async function requireAlive(ctx: AuthContext, req: Request, res: Response): Promise<SessionOfRequest> {
  const known = found.get(req) ?? (await findAlive(ctx, req, res))
  found.set(req, known)
  return known
}

async function findAlive(ctx: AuthContext, req: Request, res: Response): Promise<SessionOfRequest> {
  const claims = findAuth(req)
  const { sessions } = ctx.store
  if (!sessions) return findStateless(ctx, claims)
  // A token without `sid` needs another witness, which may stand in the body.
  const body = claims !== null && claims.sid === undefined ? await readJsonBody(req, res) : undefined
  const named = await findNamedSession({ ...ctx, sessions, sessionTokenKeys: ctx.keys['session-token'] }, req, claims, body)
  if (!named) await findActiveUser(ctx, findSubject(req) ?? '') // an account that is gone is told as such
  if (named && !named.user.isActive) throw new AccountInactiveError()
  if (!named || !isAlive(named.session, ctx.now())) throw new InvalidTokenError()
  return { ...named, ageSeconds: ageOf(ctx.now(), claims, named.session) }
}

/** Stateless refresh tokens leave no row: what the token says is all there is. */
async function findStateless(ctx: AuthContext, claims: AccessTokenClaims | null): Promise<SessionOfRequest> {
  if (!claims) throw new InvalidTokenError()
  const user = await findActiveUser(ctx, claims.sub)
  if (isSuperseded(ctx, claims, user)) throw new InvalidTokenError()
  return { session: null, user, ageSeconds: ageOf(ctx.now(), claims, null) }
}

/** By the token's own `auth_time`, in whole seconds like it; by the row for a cookie, and for a token that does not say. */
export function ageOf(now: Date, claims: AccessTokenClaims | null, session: Pick<SessionRecord, 'authenticatedAt'> | null): number | null {
  if (claims?.auth_time !== undefined) return claims.auth_time === 0 ? null : Math.floor(now.getTime() / 1000) - claims.auth_time
  const at = session?.authenticatedAt ?? null
  return at === null ? null : (now.getTime() - at.getTime()) / 1000
}
