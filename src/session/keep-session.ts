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

/** A session that goes on with a new access token, and with a new refresh token where the request showed the one that is valid now. */
export interface KeptTokens extends OpenedSession {
  accessToken: string
  refreshToken: string | null
  refreshTokenExpiresAt: Date | null
}

/** What a session becomes. */
export interface Renewal {
  readonly amr: readonly AuthMethod[]
  /** Written into the row; undefined: it stays. */
  readonly authenticatedAt?: Date
  /** What the new access token says; null: never. */
  readonly tokenAuthenticatedAt: Date | null
  /** The refresh token that the request shows. Of another session, or no longer valid: it counts for nothing. */
  readonly refreshToken: string | null
  /** The host's own, for the new access token. */
  readonly claims: HostClaims
}

/** Returns the methods of a session and these. A table without `amr` knows none, so those of the token that asks count. */
export function addMethods(
  session: SessionRecord | null,
  asking: readonly AuthMethod[],
  shown: readonly AuthMethod[],
): readonly AuthMethod[] {
  const known = session ? amrFromText(session.amr) : []
  return [...new Set([...(known.length > 0 ? known : asking), ...shown])]
}

/**
 * Goes on with a session of tokens, inside a transaction that holds the user's row and the session. It moves no end of the session. The
 * refresh token is replaced only where the request shows it: nobody gets one for an access token.
 * @throws InvalidTokenError where another request used the refresh token at the same time
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

/** The same for a server-side session: its cookie gets a new value, and the old one is dead. */
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
 * The same without a table of sessions. A refresh token holds a digest of what lets people in, so a change of that needs a new one.
 * @param shown what `trustedStateless` found, before the change; null: only a new access token
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

/** The session of a stateless refresh token, where it is valid and of this user; else null. */
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
