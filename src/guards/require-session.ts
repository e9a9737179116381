import type { Request, Response } from 'express'
import { amrFromText } from '../core/amr'
import { AppError, ConfigurationError, ServiceUnavailableError, UnauthorizedError } from '../core/errors'
import { isAnswerable } from '../http/routes'
import { type AccessTokenClaims, authTimeOf } from '../sessions/access-token'
import { askForClaims, type HostClaims } from '../sessions/ask-for-claims'
import { clearSessionCookie, readSessionCookie, setSessionCookie } from '../sessions/cookies'
import { type KnownAuth, readCredential, rememberAuth, type SessionAuth } from '../sessions/current-auth'
import {
  findAliveSession,
  findLiveSession,
  hasNewerToken,
  keepSessionRow,
  type LiveSession,
  type SessionContext,
  sessionRowOf,
  toPublicSession,
} from '../sessions/find-session'
import type { SessionWithUser } from '../store/auth-store'
import { toPublicUser } from '../store/user-records'
import type { GuardContext } from './refusing'

/** One query. Once a minute, extends the session and sends the cookie again. Every failure is the same 401, also an inactive account. */
export function requireSession(ctx: GuardContext): (req: Request, res: Response) => Promise<void> {
  const sessions = sessionsFor(ctx, 'requireSession()')
  return async (req, res) => {
    if (ctx.settings.tokenDelivery === 'session') readCredential(ctx, req) // rejects a Bearer header
    const token = readSessionCookie(ctx, req)
    const live = token === null ? null : await failClosed(() => findLiveSession({ ...ctx, sessions }, token))
    if (token === null || live === null) throw new UnauthorizedError({ reason: token === null ? 'nobody_signed_in' : 'session_over' })
    rememberAuth(req, { claims: null, user: toPublicUser(live.user), session: toPublicSession(live.session) })
    if (live.hasSlid) sendAgain(ctx, res, token, live)
  }
}

/**
 * For `tokenDelivery: 'session'`. One query; the user can be inactive. Clears the cookie of no live session, but not an older value of a
 * live session.
 * @throws InvalidTokenError for a Bearer header, which this delivery does not accept
 */
export function sessionFinder(ctx: GuardContext): (req: Request, res: Response) => Promise<SessionAuth | null> | null {
  const sessions = sessionsFor(ctx, "tokenDelivery 'session'")
  return (req, res) => {
    const credential = readCredential(ctx, req)
    return credential && find({ ...ctx, sessions }, req, res, credential.token)
  }
}

/** Calls `accessTokenClaims` at most once for each request. @throws ServiceUnavailableError if the host's function fails */
export function hostClaimsOfSession(ctx: GuardContext): (req: Request, auth: KnownAuth) => Promise<KnownAuth> {
  const asked = new WeakMap<Request, Promise<HostClaims>>()
  const source = { accessTokenClaims: ctx.accessTokenClaims ?? null, logger: ctx.logger }
  return async (req, auth) => {
    const { user, claims } = auth
    if (!user) return auth
    const answer = asked.get(req) ?? askForClaims(source, user, claims.amr)
    asked.set(req, answer)
    return { ...auth, claims: Object.freeze({ ...(await answer), ...claims }) }
  }
}

function sessionsFor({ store }: GuardContext, who: string): SessionContext['sessions'] {
  if (store?.sessions) return store.sessions
  throw new ConfigurationError(`${who} reads the session table: pass a \`store\` that has \`sessions\`; createKnexStore({ knex }) does.`)
}

async function find(ctx: GuardContext & SessionContext, req: Request, res: Response, token: string): Promise<SessionAuth | null> {
  const found = sessionRowOf(req, ctx.sessions, { token }) ?? (await readLive(ctx, req, res, token))
  if (!found) return null
  const { session, user } = found
  return { claims: claimsOf(found), user: toPublicUser(user), session: toPublicSession(session) }
}

async function readLive(ctx: GuardContext & SessionContext, req: Request, res: Response, token: string): Promise<SessionWithUser | null> {
  const live = await failClosed(() => findAliveSession(ctx, token))
  if (live) keepSessionRow(req, ctx.sessions, live)
  const isOver = !live && !(await failClosed(() => hasNewerToken(ctx, token)))
  if (!isAnswerable(res)) return live
  if (isOver) {
    clearSessionCookie(ctx, res)
    res.setHeader('Cache-Control', 'no-store')
  } else if (live?.hasSlid) sendAgain(ctx, res, token, live)
  return live
}

/** If the adapter fails, the session is unknown: 503. */
export async function failClosed<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}

/** A shared cache that stored the response could give one person's session to another person. */
function sendAgain(ctx: GuardContext, res: Response, sessionToken: string, { session }: LiveSession): void {
  if (!isAnswerable(res)) return
  setSessionCookie(ctx, res, { sessionToken, expiresAt: session.expiresAt, isPersistent: session.isPersistent })
  res.setHeader('Cache-Control', 'no-store')
}

export function claimsOf({ session, user }: SessionWithUser): AccessTokenClaims {
  const { id, amr, authenticatedAt, createdAt, expiresAt } = session
  return Object.freeze({
    amr: Object.freeze(amrFromText(amr)),
    auth_time: authTimeOf(authenticatedAt),
    email: user.email,
    exp: Math.floor(expiresAt.getTime() / 1000),
    iat: Math.floor(createdAt.getTime() / 1000),
    sessionId: id,
    sid: id,
    sub: user.id,
    typ: 'access',
  })
}
