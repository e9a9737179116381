import { createHmac, type KeyObject } from 'node:crypto'
import type { AuthContext } from '../context'
import { type AuthMethod, amrFromText } from '../core/amr'
import { AccountInactiveError, InvalidTokenError } from '../core/errors'
import { logCounted } from '../core/logger'
import { hashOpaqueToken } from '../core/opaque-token'
import { lineOf, reusedRefreshToken } from '../core/setup-warnings'
import type { SessionRecord, SessionStore, UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/user-records'
import { signAccessToken } from './access-token'
import { askForClaims, claimsToGoOn, type HostClaims } from './ask-for-claims'
import { after, isAlive, makeSessionToken, readSessionToken, type SessionTokenId } from './find-session'
import { lasting, type TokenPair } from './login'
import { isStillTrusted, readStatelessToken, signStatelessToken } from './stateless-refresh-token'

/** A session that continues: its user, its methods, and its next refresh token. */
interface ContinuedSession {
  readonly user: Pick<UserRecord, 'id' | 'email'>
  readonly amr: readonly AuthMethod[]
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  /** When the person last showed a credential. A refresh does not change this time. */
  readonly authenticatedAt: Date | null
  readonly refreshToken: string
  readonly expiresAt: Date
  /** False: the browser deletes the session's cookies when it closes. */
  readonly isPersistent: boolean
  /** A time before the user was read. The access token shows the account as it was at that time. */
  readonly at: Date
}

/**
 * Exchanges a refresh token for a new pair of tokens. The methods (`amr`) of the session stay unchanged. If a client uses a token a second
 * time, the function revokes the session (RFC 9700 section 4.14.2). The revocation stays, although the request fails. Within
 * `refreshReuseGraceSeconds`, a second use returns the first use's new token again. A stateless token can be used any number of times.
 *
 * @throws InvalidTokenError when the token is unknown, expired, revoked or reused
 * @throws AccountInactiveError; the token stays unused
 * @throws ServiceUnavailableError when the host's claims are not available; the token stays unused
 */
export async function refresh(ctx: AuthContext, presented: string): Promise<TokenPair> {
  const continued = await continueSession(ctx, presented)
  const { user, amr, sessionId, authenticatedAt, refreshToken, expiresAt, at } = continued
  // Two cases have no claims yet: a used token within the grace period, and a stateless token. Neither case uses up a token, so no
  // token is lost if the host's function fails here.
  const claims = continued.claims ?? (await claimsToGoOn(ctx, { userId: user.id, session: null, amr }))
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, { amr, sessionId, authenticatedAt, at, claims }),
    refreshToken,
    refreshTokenExpiresAt: expiresAt,
    ...lasting(continued),
  }
}

async function continueSession(ctx: AuthContext, presented: string): Promise<ContinuedSession & { claims?: HostClaims | null }> {
  const { sessions } = ctx.store
  if (!sessions) return continueStateless(ctx, presented)
  // All checks use one time: the start of the request. So a wait during the request changes no check.
  const at = ctx.now()
  const token = readSessionToken(ctx.keys['session-token'], 'tokens', presented)
  if (!token) throw new InvalidTokenError()
  const claims = await claimsBeforeUse(ctx, sessions, presented, token, at)
  const continued = (await rotate(ctx, sessions, presented, token, at)) ?? (await refuseUsedToken(ctx, sessions, presented, token, at))
  return { ...continued, claims }
}

/**
 * Returns the host's claims, before the token is used up. Null: the host has no `accessTokenClaims`, or the token is invalid or was already
 * used. For a used token, the function does not ask the host, because the session must be revoked even if the host's function fails.
 */
async function claimsBeforeUse(
  ctx: AuthContext,
  sessions: SessionStore,
  presented: string,
  { id }: SessionTokenId,
  at: Date,
): Promise<HostClaims | null> {
  const found = ctx.accessTokenClaims && (await sessions.find({ id }))
  if (found?.session.tokenHash !== hashOpaqueToken(presented) || !isAlive(found.session, at) || !found.user.isActive) return null
  return askForClaims(ctx, toPublicUser(found.user), amrFromText(found.session.amr))
}

/**
 * Uses the token up and stores its successor, in one statement. That statement decides between parallel requests, so no transaction is
 * needed.
 */
async function rotate(
  ctx: AuthContext,
  sessions: SessionStore,
  presented: string,
  { id, generation }: SessionTokenId,
  at: Date,
): Promise<ContinuedSession | null> {
  const successor = successorOf(ctx, presented, { id, generation: generation + 1 })
  const rotated = await sessions.rotate({
    tokenHash: hashOpaqueToken(presented),
    successorHash: hashOpaqueToken(successor),
    generation: generation + 1,
    expiresAt: after(at, ctx.settings.refreshTokenTtlSeconds),
    at,
  })
  if (!rotated) return null
  const { session, user } = rotated
  if (session.id !== id) throw new InvalidTokenError() // an adapter returned another session
  const { amr, authenticatedAt, expiresAt, isPersistent } = session
  return {
    user,
    amr: amrFromText(amr),
    sessionId: id,
    authenticatedAt: authenticatedAt ?? null,
    refreshToken: successor,
    expiresAt,
    isPersistent,
    at,
  }
}

async function continueStateless(ctx: AuthContext, presented: string): Promise<ContinuedSession> {
  const at = ctx.now()
  const session = readStatelessToken(ctx, presented, at)
  const user = await ctx.store.users.find(session.userId)
  if (!user || !isStillTrusted(ctx, session, user)) throw new InvalidTokenError()
  if (!user.isActive) throw new AccountInactiveError()
  const { token: refreshToken, expiresAt } = signStatelessToken(ctx, user, session, at)
  const { amr, authenticatedAt, isPersistent } = session
  return { user, amr, sessionId: null, authenticatedAt, refreshToken, expiresAt, isPersistent, at }
}

/**
 * Handles a refresh token that could not be rotated. Usually, the token was already used. Otherwise its session has ended, or its user is
 * inactive. A used token has one successor. Within the grace period, the client gets an unused successor again (two tabs, or a lost
 * response). The function writes nothing then, so a second successor never exists. In every other case, a used token revokes its session. A
 * made-up token revokes nothing.
 *
 * @throws InvalidTokenError, AccountInactiveError
 */
async function refuseUsedToken(
  ctx: AuthContext,
  sessions: SessionStore,
  presented: string,
  { id, generation }: SessionTokenId,
  at: Date,
): Promise<ContinuedSession> {
  const found = await sessions.find({ id })
  if (found?.session.kind !== 'tokens' || !isAlive(found.session, at)) throw new InvalidTokenError()
  const { session, user } = found
  if (generation >= session.generation) {
    if (hashOpaqueToken(presented) === session.tokenHash && !user.isActive) throw new AccountInactiveError()
    throw new InvalidTokenError()
  }
  if (generation !== session.generation - 1 || !isWithinWindow(ctx, session, at)) return endReusedSession(ctx, sessions, session)
  if (!user.isActive) throw new AccountInactiveError()
  const candidates = possibleSuccessors(ctx, presented, { id, generation: session.generation })
  const refreshToken = candidates.find((token) => hashOpaqueToken(token) === session.tokenHash)
  // The successor was made under a secret that is no longer listed. No misuse happened, so the session stays.
  if (refreshToken === undefined) throw new InvalidTokenError()
  const { amr, authenticatedAt, expiresAt, isPersistent, rotatedAt } = session
  return { user, amr: amrFromText(amr), sessionId: id, authenticatedAt, refreshToken, expiresAt, isPersistent, at: rotatedAt ?? at }
}

/**
 * Returns true within the grace period, but not at its end. Without a grace period, always returns false, even if the clock of another
 * server is ahead.
 */
function isWithinWindow({ settings }: AuthContext, { rotatedAt }: SessionRecord, at: Date): boolean {
  const { refreshReuseGraceSeconds } = settings
  return refreshReuseGraceSeconds > 0 && rotatedAt !== null && after(rotatedAt, refreshReuseGraceSeconds) > at
}

/** Revokes the session of a reused token. The revocation stays, although the request fails. */
async function endReusedSession(ctx: AuthContext, sessions: SessionStore, { id, userId }: SessionRecord): Promise<never> {
  if (await sessions.revoke({ id }, ctx.now())) {
    ctx.events.emit('refresh.reused', { userId, familyId: id })
    const notice = reusedRefreshToken(id, ctx.settings.refreshReuseGraceSeconds)
    ctx.notices.keep(notice)
    // Not a notice's line: an attacker's own reuses must not use up the lines of the owner's.
    logCounted(ctx.logger, { level: notice.level, kind: notice.entry, fields: notice.fields ?? {}, message: lineOf(notice) })
  }
  throw new InvalidTokenError()
}

/**
 * Returns the refresh token that replaces `predecessor`. Without a grace period, its secret bytes are random. With a grace period, the
 * function derives the secret bytes from the predecessor and the session's id, with our key. So a late request gets the first request's
 * token again, although doorward stores no token. The database alone does not reveal the token. The predecessor alone does not reveal the
 * token either.
 */
function successorOf({ keys, settings }: AuthContext, predecessor: string, next: SessionTokenId): string {
  if (settings.refreshReuseGraceSeconds === 0) return makeSessionToken(keys['session-token'], 'tokens', next)
  return derived(keys['refresh-successor'][0], keys['session-token'][0], predecessor, next)
}

/**
 * Returns every token that `successorOf` could have returned with a grace period. `jwtSecret` can list several secrets, and the first one
 * makes new tokens. The result has one token for each secret, because the first secret may have changed after the successor was made.
 */
function possibleSuccessors({ keys }: AuthContext, predecessor: string, next: SessionTokenId): string[] {
  const [first, ...others] = keys['session-token']
  return keys['refresh-successor'].map((key, place) => derived(key, others[place - 1] ?? first, predecessor, next))
}

function derived(successorKey: KeyObject, tokenKey: KeyObject, predecessor: string, next: SessionTokenId): string {
  const secret = createHmac('sha256', successorKey)
    .update(predecessor + next.id)
    .digest()
  return makeSessionToken([tokenKey], 'tokens', next, secret)
}
