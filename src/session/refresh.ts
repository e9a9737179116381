import { randomUUID } from 'node:crypto'
import { type AuthMethod, amrFromText } from '../amr'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { RefreshTokenStore, UserRecord } from '../store/auth-store'
import { signAccessToken } from './access-token'
import type { LoginResult } from './finish-login'
import { after, type IssuedRefreshToken, successorOf } from './refresh-token'
import { replay } from './replay'
import { isStillTrusted, readStatelessToken, signStatelessToken } from './stateless-refresh-token'

/** A session that goes on: whose, how it began, and its next refresh token. */
export interface ContinuedSession {
  readonly user: Pick<UserRecord, 'id' | 'email'>
  readonly amr: readonly AuthMethod[]
  /** Made before the user was read, and so is the access token beside it: what it may do is what the account allowed then. */
  readonly refreshToken: IssuedRefreshToken
}

/**
 * Spends a refresh token for a new pair. The methods of the session's origin are repeated, never extended. A token
 * presented twice ends its whole family (RFC 9700 section 4.14.2), and that end is committed although the request fails;
 * with `refreshReuseGraceSeconds` it first gets its one successor again for that long (contract section 13, Grace). Where the
 * store has no refresh tokens, a stateless one buys the next, and may do so again.
 * @throws InvalidTokenError unknown, expired, revoked or reused; AccountInactiveError with the token unspent
 */
export async function refresh(ctx: AuthContext, presented: string): Promise<LoginResult> {
  const { user, amr, refreshToken } = await continueSession(ctx, presented)
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, amr, refreshToken.createdAt),
    refreshToken: refreshToken.token,
    refreshTokenExpiresAt: refreshToken.expiresAt,
  }
}

async function continueSession(ctx: AuthContext, presented: string): Promise<ContinuedSession> {
  const { refreshTokens } = ctx.store
  if (!refreshTokens) return continueStateless(ctx, presented)
  // One instant for both: whoever waited for the winner, or for the database, is judged by when it asked.
  const at = ctx.now()
  return (await rotate(ctx, refreshTokens, presented, at)) ?? (await replay(ctx, refreshTokens, presented, at))
}

/** No unit around it: the verb is one by itself, and on PostgreSQL a single statement. */
async function rotate(ctx: AuthContext, refreshTokens: RefreshTokenStore, presented: string, at: Date): Promise<ContinuedSession | null> {
  const id = randomUUID()
  const successor = successorOf(ctx, presented, id)
  const rotated = await refreshTokens.rotate({
    tokenHash: hashOpaqueToken(presented),
    child: { id, tokenHash: hashOpaqueToken(successor) },
    childExpiresAt: after(at, ctx.settings.refreshTokenTtlSeconds),
    at,
  })
  if (!rotated) return null
  const { token, user } = rotated
  return { user, amr: amrFromText(token.amr), refreshToken: { token: successor, expiresAt: token.expiresAt, createdAt: at } }
}

async function continueStateless(ctx: AuthContext, presented: string): Promise<ContinuedSession> {
  const at = ctx.now()
  const session = readStatelessToken(ctx, presented, at)
  const user = await ctx.store.users.find(session.userId)
  if (!user || !isStillTrusted(ctx, session, user)) throw new InvalidTokenError()
  if (!user.isActive) throw new AccountInactiveError()
  return { user, amr: session.amr, refreshToken: signStatelessToken(ctx, user, session.amr, session.end, at) }
}
