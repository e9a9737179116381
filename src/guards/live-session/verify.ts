import type { Request } from 'express'
import { InvalidTokenError, ServiceUnavailableError, UnauthorizedError } from '../../core/errors'
import { describeError, type Logger, logCounted } from '../../core/logger'
import { withTimeout } from '../../core/with-timeout'
import { refuseAsHandler } from '../../http/forgotten-call'
import { refuseCrossSite } from '../../http/same-site'
import type { AccessTokenClaims } from '../../sessions/access-token'
import { type KnownAuth, readCredential } from '../../sessions/current-auth'
import { findBySessionCookie, isAlive } from '../../sessions/find-session'
import type { HostTypes } from '../../store/host-types'
import { type GuardContext, logRefusal } from '../refusing'
import { claimsOf, failClosed } from '../require-session'
import { refusalOf } from './refusal-of'
import { type RequestWithHeaders, requestOf } from './request-headers'
import { createSessionWatch, type SessionWatch } from './session-watch'

/** Whom a credential names, for code that has no request of Express. */
export interface VerifiedCredential<Host extends HostTypes = HostTypes> {
  readonly userId: string
  /** The claims, as `getAuth(req)` returns them. */
  readonly claims: AccessTokenClaims & ClaimsIn<Host>
  /** Null: an access token without `sid`. */
  readonly sessionId: string | null
  /** The end of the access token. With `tokenDelivery: 'session'`, the end of the session as it was read; each use can extend it. */
  readonly expiresAt: Date
  /**
   * Aborts when the access token expires, or when `requireLiveSession` would refuse the session: revoked, expired, account inactive or
   * deleted. The first reading of this property starts the watch. `signal.reason` is a TokenExpiredError at the end of the token, otherwise
   * an InvalidTokenError or AccountInactiveError. If this router ends the session, the signal aborts at once; otherwise within
   * `liveSessionPollSeconds`. If the database does not answer, the signal stays open until `expiresAt`.
   */
  readonly signal: AbortSignal
  /** Ends the watch without an abort. Call it when the socket closes. */
  release(): void
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
  const watch = createSessionWatch(ctx)
  return {
    verify: called(ctx, 'guards.verify', async (request: RequestWithHeaders) => {
      const token = readToken(ctx, requestOf(request))
      return verifyAccess ? ofToken(ctx, watch, await verifyAccess(token)) : ofSessionCookie(ctx, watch, token)
    }),
    verifyToken: called(ctx, 'guards.verifyToken', async (token: unknown) => {
      if (!verifyAccess || typeof token !== 'string') throw new InvalidTokenError({ reason: 'no_access_token' })
      return ofToken(ctx, watch, await asInvalid(() => verifyAccess(token)))
    }),
  }
}

function called<Given>(ctx: GuardContext, name: string, check: (given: Given) => Promise<VerifiedCredential>) {
  return (...given: [Given]) => {
    refuseAsHandler(name, given)
    return guarded(ctx, () => check(...given))
  }
}

/** Logs the refusal like a guard, and waits for the database as long as a guard. */
async function guarded<T>(ctx: GuardContext, check: () => Promise<T>): Promise<T> {
  try {
    return await withTimeout(check(), ctx.settings.unitTimeoutSeconds * 1000, () => new ServiceUnavailableError())
  } catch (error) {
    logRefusal(ctx.logger, error)
    if (error instanceof ServiceUnavailableError) logOverload(ctx.logger, error)
    throw error
  }
}

/** The library of a socket tells nobody the cause. */
function logOverload(logger: Logger, { code, cause }: ServiceUnavailableError): void {
  const { at: _, ...reason } = describeError(cause) // without a stack, because the line comes from a flood
  const kind = `${code} ${reason.name} ${reason.code}`
  logCounted(logger, {
    level: 'error',
    kind,
    fields: { code, cause: reason },
    message: 'doorward: the credential of a socket could not be checked',
  })
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

async function ofToken(ctx: GuardContext, watch: SessionWatch, { claims }: KnownAuth): Promise<VerifiedCredential> {
  const { sid, sub: userId, exp } = claims
  const sessions = ctx.store?.sessions
  const about = { userId, claims, sessionId: sid ?? null, expiresAt: new Date(exp * 1000) }
  const tokenEndsAt = about.expiresAt
  const endsSeen = watch.ends()
  if (!sessions || sid === undefined) return watching(about, () => watch.open({ userId, session: null, tokenEndsAt }, endsSeen))
  const found = await failClosed(() => sessions.find({ id: sid }))
  const refusal = refusalOf(found, { id: sid, userId }, ctx.now())
  if (refusal || !found) throw refusal
  return watching(about, () => watch.open({ userId, session: found.session, tokenEndsAt }, endsSeen))
}

/** As a guard refuses: the cookie of an ended session counts as no cookie. */
async function ofSessionCookie(ctx: GuardContext, watch: SessionWatch, token: string): Promise<VerifiedCredential> {
  const { store, sessionTokenKeys, now } = ctx
  const sessions = store?.sessions
  const endsSeen = watch.ends()
  const found = sessions ? await failClosed(() => findBySessionCookie({ sessions, sessionTokenKeys }, token)) : null
  if (!found || !isAlive(found.session, now())) throw new UnauthorizedError({ reason: 'session_over' })
  if (!found.user.isActive) throw new UnauthorizedError({ reason: 'account_inactive' })
  const { session } = found
  const { id: sessionId, userId, expiresAt } = session
  const about = { userId, claims: claimsOf(found), sessionId, expiresAt }
  return watching(about, () => watch.open({ userId, session, tokenEndsAt: null }, endsSeen))
}

/** The watch begins at the first reading of `signal`. */
function watching(
  about: Omit<VerifiedCredential, 'signal' | 'release'>,
  open: () => Pick<VerifiedCredential, 'signal' | 'release'>,
): VerifiedCredential {
  let opened: ReturnType<typeof open> | null = null
  let isReleased = false
  return {
    ...about,
    get signal() {
      opened ??= open()
      if (isReleased) opened.release()
      return opened.signal
    },
    release() {
      isReleased = true
      opened?.release()
    },
  }
}
