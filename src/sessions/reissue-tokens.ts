import type { AuthContext } from '../context'
import { type AuthMethod, amrFromText, amrToText } from '../core/amr'
import { InvalidTokenError } from '../core/errors'
import { hashOpaqueToken } from '../core/opaque-token'
import type { SessionChanges, SessionRecord, UserRecord } from '../store/auth-store'
import { signAccessToken } from './access-token'
import type { HostClaims } from './ask-for-claims'
import { lasting, makeSessionToken, sessionsOf } from './find-session'
import type { OpenedServerSession, OpenedSession } from './login'
import { isStillTrusted, readStatelessToken, type StatelessSession, signStatelessToken } from './stateless-refresh-token'

/** A session that continues with a new access token, and with a new refresh token if the request showed the valid one. */
export interface KeptTokens extends OpenedSession {
  accessToken: string
  refreshToken: string | null
  refreshTokenExpiresAt: Date | null
}

export type ReissuedTokens = KeptTokens

export interface Renewal {
  readonly amr: readonly AuthMethod[]
  /** Undefined: the row's time stays, as without a new token, because a copy of the old token must not become fresh. */
  readonly authenticatedAt?: Date
  /** For `auth_time` of the new access token. Null: 0. */
  readonly tokenAuthenticatedAt: Date | null
  /** Only the live token of this session counts. */
  readonly refreshToken: string | null
  readonly claims: HostClaims
}

/** Uses the methods of the request's token if the store keeps no sessions, or the table has no `amr` column. */
export function addMethods(
  session: SessionRecord | null,
  asking: readonly AuthMethod[],
  shown: readonly AuthMethod[],
): readonly AuthMethod[] {
  const known = session?.amr ? amrFromText(session.amr) : asking
  return [...new Set([...known, ...shown])]
}

/**
 * Call it inside a transaction that has locked the user's row and the session. Does not extend the session. Replaces the refresh token only
 * if the request shows it: an access token alone must not give a refresh token.
 * @param session the locked row
 */
export async function keepTokens(
  ctx: AuthContext,
  user: UserRecord,
  session: SessionRecord,
  { amr, authenticatedAt, tokenAuthenticatedAt, refreshToken, claims }: Renewal,
): Promise<ReissuedTokens> {
  const renewed = isLiveToken(session, refreshToken) ? newToken(ctx, session) : null
  const isConfirmed = authenticatedAt !== undefined
  await updateRow(ctx, session, {
    ...((renewed || !isConfirmed) && { amr: amrToText(amr) }),
    ...(renewed && isConfirmed && { authenticatedAt }),
    ...renewed?.columns,
  })
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, {
      amr,
      sessionId: session.id,
      authenticatedAt: tokenAuthenticatedAt,
      at: ctx.now(),
      claims,
    }),
    refreshToken: renewed?.token ?? null,
    refreshTokenExpiresAt: renewed ? session.expiresAt : null,
    ...lasting(session),
  }
}

export function isLiveToken({ kind, tokenHash }: SessionRecord, presented: string | null): presented is string {
  return kind === 'tokens' && presented !== null && hashOpaqueToken(presented) === tokenHash
}

/** The generation skips a number, so the grace period never applies to the old token: its next use revokes the session. */
function newToken(ctx: AuthContext, { id, kind, generation: old }: SessionRecord) {
  const generation = old + 2
  const token = makeSessionToken(ctx.keys['session-token'], kind, { id, generation })
  return { token, columns: { tokenHash: hashOpaqueToken(token), generation } }
}

async function updateRow(ctx: AuthContext, { id }: SessionRecord, changes: SessionChanges): Promise<void> {
  if (Object.keys(changes).length > 0) await sessionsOf(ctx.store).update(id, changes)
}

export type RenewedCookie = { readonly sessionToken: string; readonly expiresAt: Date; readonly isPersistent: boolean } | RenewedTokens

export interface RenewedTokens {
  readonly refreshToken: string
  readonly refreshTokenExpiresAt: Date
  readonly isPersistent: boolean
}

export interface StayingSession {
  readonly user: UserRecord
  /** Null: the cookie of the request stays. */
  readonly cookie: RenewedCookie | null
}

/** Null or absent: the session did not come by a cookie, and its token stays. */
export interface CookieOfRequest {
  /** The refresh cookie. Null for a server-side session. */
  readonly refreshToken: string | null
}

/** A copy of the old cookie dies. Call it with the session locked. @returns null if the request does not show the live cookie */
export async function renewCookie(
  ctx: AuthContext,
  session: SessionRecord | null,
  cookie: CookieOfRequest | null | undefined,
): Promise<RenewedCookie | null> {
  if (!session || !cookie || (session.kind === 'tokens' && !isLiveToken(session, cookie.refreshToken))) return null
  const { token, columns } = newToken(ctx, session)
  await updateRow(ctx, session, columns)
  const { kind, expiresAt, isPersistent } = session
  return kind === 'session'
    ? { sessionToken: token, expiresAt, isPersistent }
    : { refreshToken: token, refreshTokenExpiresAt: expiresAt, isPersistent }
}

export async function keepServerSession(
  ctx: AuthContext,
  session: SessionRecord,
  { amr, authenticatedAt }: Pick<Renewal, 'amr' | 'authenticatedAt'>,
): Promise<OpenedServerSession> {
  const { token, columns } = newToken(ctx, session)
  await updateRow(ctx, session, { amr: amrToText(amr), ...(authenticatedAt && { authenticatedAt }), ...columns })
  const { userId, id: sessionId, expiresAt } = session
  return { kind: 'session', userId, amr, sessionId, sessionToken: token, expiresAt, ...lasting(session) }
}

/**
 * A refresh token contains a digest of the account's credentials, so their change needs a new one.
 * @param shown `trustedStateless` before the change; null: the session gets a new access token, but no new refresh token
 */
export function keepStateless(
  ctx: AuthContext,
  user: UserRecord,
  { amr, tokenAuthenticatedAt, claims }: Pick<Renewal, 'amr' | 'tokenAuthenticatedAt' | 'claims'>,
  shown: StatelessSession | null,
): ReissuedTokens {
  const at = ctx.now()
  const refresh = shown && signStatelessToken(ctx, user, { ...shown, amr }, at)
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, { amr, sessionId: null, authenticatedAt: tokenAuthenticatedAt, at, claims }),
    refreshToken: refresh?.token ?? null,
    refreshTokenExpiresAt: refresh?.expiresAt ?? null,
    ...(shown && lasting(shown)),
  }
}

/** Null: the token is invalid, or of another user. */
export function trustedStateless(ctx: AuthContext, user: UserRecord, presented: string | null): StatelessSession | null {
  if (presented === null) return null
  try {
    const session = readStatelessToken(ctx, presented, ctx.now())
    return session.userId === user.id && isStillTrusted(ctx, session, user) ? session : null
  } catch (error) {
    if (error instanceof InvalidTokenError) return null
    throw error
  }
}
