import { type AuthMethod, amrFromText, amrToText } from '../amr'
import type { HostClaims } from '../claims/host-claims'
import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionRecord, SessionStore, UserRecord } from '../store/auth-store'
import { signAccessToken } from './access-token'
import { findByRefreshToken, sessionsOf } from './find-session'
import { lasting, type OpenedSession } from './finish-login'
import type { OpenedServerSession } from './open-session'
import { makeSessionToken } from './session-token'
import { isStillTrusted, readStatelessToken, type StatelessSession, signStatelessToken } from './stateless-refresh-token'
import { successorOf } from './successor'

/**
 * A session that continues with a new access token. If the request showed the valid refresh token, the session also gets a new refresh
 * token.
 */
export interface KeptTokens extends OpenedSession {
  accessToken: string
  refreshToken: string | null
  refreshTokenExpiresAt: Date | null
}

/** The new values of a session that continues. */
export interface Renewal {
  readonly amr: readonly AuthMethod[]
  /** The time for the session's row. Undefined: the row stays unchanged. */
  readonly authenticatedAt?: Date
  /** The time for `auth_time` of the new access token. Null: `auth_time` is 0. */
  readonly tokenAuthenticatedAt: Date | null
  /** The refresh token of the request. `keepTokens` ignores an invalid refresh token, and a refresh token of another session. */
  readonly refreshToken: string | null
  /** The host's own claims for the new access token. */
  readonly claims: HostClaims
}

/**
 * Returns the session's methods together with the new methods. If the store keeps no sessions, or the table has no `amr` column, the
 * function uses the methods of the request's token.
 */
export function addMethods(
  session: SessionRecord | null,
  asking: readonly AuthMethod[],
  shown: readonly AuthMethod[],
): readonly AuthMethod[] {
  const known = session ? amrFromText(session.amr) : []
  return [...new Set([...(known.length > 0 ? known : asking), ...shown])]
}

/**
 * Continues a session of tokens, inside a transaction that has locked the user's row and the session. Does not extend the session. Replaces
 * the refresh token only if the request shows it. So nobody can get a refresh token with an access token alone.
 * @throws InvalidTokenError when a parallel request used the refresh token
 */
export async function keepTokens(
  ctx: AuthContext,
  user: UserRecord,
  session: SessionRecord,
  { amr, authenticatedAt, tokenAuthenticatedAt, refreshToken, claims }: Renewal,
): Promise<KeptTokens> {
  const sessions = sessionsOf(ctx.store)
  await sessions.update(session.id, { amr: amrToText(amr), ...(authenticatedAt && { authenticatedAt }) })
  const successor = refreshToken === null ? null : await rotate(ctx, sessions, session, refreshToken)
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
    refreshToken: successor,
    refreshTokenExpiresAt: successor === null ? null : session.expiresAt,
    ...lasting(session),
  }
}

async function rotate(ctx: AuthContext, sessions: SessionStore, session: SessionRecord, presented: string): Promise<string | null> {
  const found = await findByRefreshToken({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, presented)
  if (found?.session.id !== session.id) return null
  const generation = session.generation + 1
  const successor = successorOf(ctx, presented, { id: session.id, generation })
  const rotated = await sessions.rotate({
    tokenHash: hashOpaqueToken(presented),
    successorHash: hashOpaqueToken(successor),
    generation,
    expiresAt: session.expiresAt,
    at: ctx.now(),
  })
  if (rotated?.session.id !== session.id) throw new InvalidTokenError()
  return successor
}

/** Continues a server-side session. The cookie gets a new value, and the old value becomes invalid. */
export async function keepServerSession(
  ctx: AuthContext,
  session: SessionRecord,
  { amr, authenticatedAt }: Pick<Renewal, 'amr' | 'authenticatedAt'>,
): Promise<OpenedServerSession> {
  const generation = session.generation + 1
  const token = makeSessionToken(ctx.keys['session-token'], 'session', { id: session.id, generation })
  await sessionsOf(ctx.store).update(session.id, {
    amr: amrToText(amr),
    ...(authenticatedAt && { authenticatedAt }),
    tokenHash: hashOpaqueToken(token),
    generation,
  })
  const { userId, id: sessionId, expiresAt } = session
  return { kind: 'session', userId, amr, sessionId, sessionToken: token, expiresAt, ...lasting(session) }
}

/**
 * Continues a session that the store does not keep. A refresh token contains a digest of the account's credentials. So a change of the
 * credentials needs a new refresh token.
 * @param shown the result of `trustedStateless` before the change; null: the session gets a new access token, but no new refresh token
 */
export function keepStateless(
  ctx: AuthContext,
  user: UserRecord,
  { amr, tokenAuthenticatedAt, claims }: Pick<Renewal, 'amr' | 'tokenAuthenticatedAt' | 'claims'>,
  shown: StatelessSession | null,
): KeptTokens {
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

/** Returns the session of a stateless refresh token. Null: the token is invalid, or of another user. */
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
