import { createHmac, type KeyObject } from 'node:crypto'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { type AuthMethod, amrFromText } from '../core/amr'
import { AccountInactiveError, InvalidTokenError, UnauthorizedError } from '../core/errors'
import { logCounted } from '../core/logger'
import { hashOpaqueToken } from '../core/opaque-token'
import { lineOf, reusedRefreshToken } from '../core/setup-warnings'
import type { Description } from '../http/description'
import { text } from '../http/input'
import { type Route, withBody } from '../http/routes'
import type { SessionRecord, SessionStore, UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/user-records'
import { signAccessToken } from './access-token'
import { askForClaims, claimsToGoOn, type HostClaims } from './ask-for-claims'
import { readRefreshCookie } from './cookies'
import { clearEndedCookies } from './current-auth'
import { loginAnswer, sendRefreshed } from './delivery'
import { after, isAlive, lasting, makeSessionToken, readSessionToken, type SessionTokenId } from './find-session'
import type { TokenPair } from './login'
import type { RouteSet } from './routes-by-delivery'
import { isStillTrusted, readStatelessToken, signStatelessToken } from './stateless-refresh-token'

function describesRefresh(ctx: AuthContext, delivery: 'bearer' | 'cookie'): Description {
  return {
    summary: 'Get a new access token and a new refresh token',
    answers: [loginAnswer({ ...ctx, loginTasks: null }, delivery)],
    refuses: [UnauthorizedError, InvalidTokenError, AccountInactiveError],
  }
}

export function bodyRefresh(ctx: AuthContext, { base, before }: Pick<RouteSet, 'base' | 'before'>): Route {
  return withBody({
    method: 'POST',
    path: `${base}/refresh`,
    describes: describesRefresh(ctx, 'bearer'),
    delivers: 'login',
    before,
    body: Joi.object<{ refresh_token: string }>({ refresh_token: text(4096) }),
    handle: async (_req, res, body) => sendRefreshed(ctx, res, await refresh(ctx, body.refresh_token), 'bearer'),
  })
}

export function cookieRefresh(ctx: AuthContext, { base, before }: RouteSet): Route {
  return withBody({
    method: 'POST',
    path: `${base}/refresh`,
    describes: { ...describesRefresh(ctx, 'cookie'), credential: 'refresh_cookie' },
    delivers: 'login',
    before,
    body: Joi.object({}),
    handle: async (req, res) => {
      const presented = readRefreshCookie(ctx, req)
      if (presented === null) throw new UnauthorizedError()
      try {
        sendRefreshed(ctx, res, await refresh(ctx, presented), 'cookie')
      } catch (error) {
        if (error instanceof InvalidTokenError) await clearEndedCookies(ctx, req, res) // a second use has revoked the session
        throw error
      }
    },
  })
}

interface ContinuedSession {
  readonly user: Pick<UserRecord, 'id' | 'email'>
  readonly amr: readonly AuthMethod[]
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  /** A refresh does not change it. */
  readonly authenticatedAt: Date | null
  readonly refreshToken: string
  readonly expiresAt: Date
  /** False: the browser deletes the cookies when it closes. */
  readonly isPersistent: boolean
  /** Before the user was read: the access token shows the account as of that time. */
  readonly at: Date
}

/**
 * `amr` stays. A second use of a token revokes the session (RFC 9700 section 4.14.2), although the request fails. Within
 * `refreshReuseGraceSeconds`, a second use returns the same new token. A stateless token can be used any number of times.
 * @throws InvalidTokenError; AccountInactiveError and ServiceUnavailableError (the host's claims) leave the token unused
 */
export async function refresh(ctx: AuthContext, presented: string): Promise<TokenPair> {
  const continued = await continueSession(ctx, presented)
  const { user, amr, sessionId, authenticatedAt, refreshToken, expiresAt, at } = continued
  // A used token within the grace period, or a stateless token. Nothing is used up, so no token is lost if the host's function fails.
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
  // All checks use the start of the request, so a wait changes no check.
  const at = ctx.now()
  const token = readSessionToken(ctx.keys['session-token'], 'tokens', presented)
  if (!token) throw new InvalidTokenError()
  const claims = await claimsBeforeUse(ctx, sessions, presented, token, at)
  const continued = (await rotate(ctx, sessions, presented, token, at)) ?? (await refuseUsedToken(ctx, sessions, presented, token, at))
  return { ...continued, claims }
}

/** Null also for a used token: its session must be revoked even if the host's function fails, so the host is not asked. */
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

/** One statement decides between parallel requests, so no transaction is needed. */
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
 * The token was used, its session has ended, or its user is inactive. Within the grace period, the client gets an unused successor again
 * (two tabs, or a lost response). A second one never exists. Otherwise a used token revokes its session. A made-up token revokes nothing.
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

/** False without a grace period, even if the clock of another server is ahead. */
function isWithinWindow({ settings }: AuthContext, { rotatedAt }: SessionRecord, at: Date): boolean {
  const { refreshReuseGraceSeconds } = settings
  return refreshReuseGraceSeconds > 0 && rotatedAt !== null && after(rotatedAt, refreshReuseGraceSeconds) > at
}

/** The revocation stays, although the request fails. */
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
 * Random without a grace period. With one, derived from the predecessor and the session's id with our key: a late request gets the first
 * one's token again, although no token is stored. Neither the database nor the predecessor alone reveals it.
 */
function successorOf({ keys, settings }: AuthContext, predecessor: string, next: SessionTokenId): string {
  if (settings.refreshReuseGraceSeconds === 0) return makeSessionToken(keys['session-token'], 'tokens', next)
  return derived(keys['refresh-successor'][0], keys['session-token'][0], predecessor, next)
}

/** One token for each secret of `jwtSecret`: the first secret may have changed after the successor was made. */
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
