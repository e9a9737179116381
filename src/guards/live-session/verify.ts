import type { Request } from 'express'
import { AccountInactiveError, type AppError, InvalidTokenError, ServiceUnavailableError, UnauthorizedError } from '../../core/errors'
import { withTimeout } from '../../core/with-timeout'
import { refuseCrossSite } from '../../http/same-site'
import type { AccessTokenClaims } from '../../sessions/access-token'
import { type KnownAuth, readCredential } from '../../sessions/current-auth'
import { findBySessionCookie, isAlive } from '../../sessions/find-session'
import type { SessionWithUser } from '../../store/auth-store'
import type { HostTypes } from '../../store/host-types'
import { type GuardContext, logRefusal } from '../refusing'
import { claimsOf, failClosed } from '../require-session'
import { type RequestWithHeaders, requestOf } from './request-headers'

/** Whom a credential names, for code that has no request of Express. */
export interface VerifiedCredential<Host extends HostTypes = HostTypes> {
  readonly userId: string
  /** The claims, as `getAuth(req)` returns them. */
  readonly claims: AccessTokenClaims & ClaimsIn<Host>
  /** Null: an access token without `sid`. */
  readonly sessionId: string | null
  /** The end of the access token. With `tokenDelivery: 'session'`, the end of the session as it was read; each use can extend it. */
  readonly expiresAt: Date
}

/** With `tokenDelivery: 'session'` no credential contains the host's claims. */
type ClaimsIn<Host extends HostTypes> = Host extends { delivery: 'session' }
  ? object
  : Host extends { claims: infer Claims extends object }
    ? Readonly<Claims>
    : object

export interface Verifiers<Host extends HostTypes = HostTypes> {
  /**
   * Checks the request of a WebSocket upgrade or a Socket.IO handshake, or any object with `headers`. If the guards have a store with
   * sessions and the credential names a session, checks like `requireLiveSession`, with one query; otherwise like `requireAuth`. Reads
   * headers only. Writes nothing. A credential in a cookie also needs an allowed origin.
   * @throws UnauthorizedError, InvalidTokenError, TokenExpiredError, AccountInactiveError; CsrfValidationFailedError for a cookie from
   * another site; ServiceUnavailableError if the database does not answer; TypeError without `headers`
   */
  verify(request: RequestWithHeaders): Promise<VerifiedCredential<Host>>
  /**
   * Checks an access token alone, like `verify`. For queues and workers, and for the first message of a socket.
   * @throws InvalidTokenError for everything that is no valid access token, and with `tokenDelivery: 'session'`; TokenExpiredError;
   * AccountInactiveError; ServiceUnavailableError if the database does not answer
   */
  verifyToken(token: unknown): Promise<VerifiedCredential<Host>>
}

type VerifyAccess = (token: string) => KnownAuth | Promise<KnownAuth>

/** @param verifyAccess null with `tokenDelivery: 'session'`, where no access token is valid */
export function verifiersFor(ctx: GuardContext, verifyAccess: VerifyAccess | null): Verifiers {
  return {
    verify: (request) =>
      guarded(ctx, async () => {
        const token = readToken(ctx, requestOf(request))
        return verifyAccess ? ofToken(ctx, await verifyAccess(token)) : ofSessionCookie(ctx, token)
      }),
    verifyToken: (token) =>
      guarded(ctx, async () => {
        if (!verifyAccess || typeof token !== 'string') throw new InvalidTokenError({ reason: 'no_access_token' })
        return ofToken(ctx, await asInvalid(() => verifyAccess(token)))
      }),
  }
}

/** Logs the refusal like a guard, and waits for the database as long as a guard. */
async function guarded<T>(ctx: GuardContext, check: () => Promise<T>): Promise<T> {
  try {
    return await withTimeout(check(), ctx.settings.unitTimeoutSeconds * 1000, () => new ServiceUnavailableError())
  } catch (error) {
    logRefusal(ctx.logger, error)
    throw error
  }
}

/** No browser adds a Bearer header by itself. Without `isOwnCookie`, none of two cookies with one name counts. */
function readToken({ settings, notices }: GuardContext, req: Request): string {
  const credential = readCredential({ settings, notices }, req)
  if (!credential) throw new UnauthorizedError({ reason: 'nobody_signed_in' })
  if (credential.from === 'cookie') refuseCrossSite({ settings, notices }, req)
  return credential.token
}

/** A token of another kind, such as that of the second-factor step, is a wrong token here, because the caller calls it an access token. */
async function asInvalid(verify: () => KnownAuth | Promise<KnownAuth>): Promise<KnownAuth> {
  try {
    return await verify()
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || error.code !== UnauthorizedError.code) throw error
    throw new InvalidTokenError({ cause: error, reason: 'no_access_token' })
  }
}

async function ofToken(ctx: GuardContext, { claims }: KnownAuth): Promise<VerifiedCredential> {
  const { sid, sub, exp } = claims
  const sessions = ctx.store?.sessions
  const credential = { userId: sub, claims, sessionId: sid ?? null, expiresAt: new Date(exp * 1000) }
  if (!sessions || sid === undefined) return credential
  const found = await failClosed(() => sessions.find({ id: sid }))
  const refusal = refusalOf(found, { id: sid, userId: sub }, ctx.now())
  if (refusal) throw refusal
  return credential
}

/** Null: the session is live, and its account active. */
function refusalOf(found: SessionWithUser | null, { id, userId }: { id: string; userId: string }, now: Date): AppError | null {
  // createGuards() uses the host's store directly, so its result is checked.
  const isAsked = found?.session.id === id && found.session.userId === userId && found.user.id === userId
  if (isAsked && !found.user.isActive) return new AccountInactiveError()
  return isAsked && isAlive(found.session, now) ? null : new InvalidTokenError({ reason: 'session_over' })
}

/** As a guard refuses: the cookie of an ended session counts as no cookie. */
async function ofSessionCookie({ store, sessionTokenKeys, now }: GuardContext, token: string): Promise<VerifiedCredential> {
  const sessions = store?.sessions
  const found = sessions ? await failClosed(() => findBySessionCookie({ sessions, sessionTokenKeys }, token)) : null
  if (!found || !isAlive(found.session, now())) throw new UnauthorizedError({ reason: 'session_over' })
  if (!found.user.isActive) throw new UnauthorizedError({ reason: 'account_inactive' })
  const { id, userId, expiresAt } = found.session
  return { userId, claims: claimsOf(found), sessionId: id, expiresAt }
}
