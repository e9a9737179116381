import type { Request, Response } from 'express'
import { amrFromText } from '../amr'
import { askForClaims } from '../claims/ask-for-claims'
import type { HostClaims } from '../claims/host-claims'
import { AppError, ConfigurationError, ServiceUnavailableError } from '../errors'
import { type AccessTokenClaims, authTimeOf } from '../session/access-token'
import { findAliveSession, hasNewerToken, type LiveSession, type SessionContext, toPublicSession } from '../session/find-session'
import { clearSessionCookie, setSessionCookie } from '../session/session-cookie'
import type { SessionWithUser } from '../store/auth-store'
import { toPublicUser } from '../store/public-user'
import { readCredential } from './credentials'
import type { KnownAuth, SessionAuth } from './current-auth'
import type { GuardContext } from './guards'
import { keepSessionRow, sessionRowOf } from './session-row'

/**
 * Finds who asks in delivery `session`: the living session of the cookie and its user, who may be inactive, by one query. Null: there is no
 * such session; a cookie that names none is cleared, but for the older value of one that lives on.
 * @throws InvalidTokenError for a Bearer header, which is never ignored
 */
export function sessionFinder(ctx: GuardContext): (req: Request, res: Response) => Promise<SessionAuth | null> | null {
  const sessions = sessionsFor(ctx, "tokenDelivery 'session'")
  return (req, res) => {
    const credential = readCredential(ctx, req)
    return credential && find({ ...ctx, sessions }, req, res, credential.token)
  }
}

/**
 * Adds the host's own claims to those of a session. The host is asked once per request, and only by a guard that looks at claims.
 * @throws ServiceUnavailableError where it cannot say them
 */
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

/** The session table behind a guard. @throws ConfigurationError */
export function sessionsFor({ store }: GuardContext, who: string): SessionContext['sessions'] {
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
  const live = await closed(() => findAliveSession(ctx, token))
  if (live) keepSessionRow(req, ctx.sessions, live)
  const isOver = !live && !(await closed(() => hasNewerToken(ctx, token)))
  if (res.headersSent) return live // the host has answered while we were asking
  if (isOver) {
    clearSessionCookie(ctx, res)
    res.setHeader('Cache-Control', 'no-store')
  } else if (live?.hasSlid) sendAgain(ctx, res, token, live)
  return live
}

/** An adapter that fails tells us nothing about the session: closed, and worth trying again. */
export async function closed<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}

/** On an answer of the host's: no shared cache may keep a Set-Cookie, and hand one person's session to the next. */
export function sendAgain(ctx: GuardContext, res: Response, sessionToken: string, { session }: LiveSession): void {
  if (res.headersSent) return // the host has answered while we were asking
  setSessionCookie(ctx, res, { sessionToken, expiresAt: session.expiresAt, isPersistent: session.isPersistent })
  res.setHeader('Cache-Control', 'no-store')
}

/** The fields of an access token, from the rows as they are now. */
function claimsOf({ session, user }: SessionWithUser): AccessTokenClaims {
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
