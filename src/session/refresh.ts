import { randomUUID } from 'node:crypto'
import { amrFromText } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import type { RefreshTokenRecord } from '../store/auth-store'
import { signAccessToken } from './access-token'
import type { LoginResult } from './finish-login'
import { after, hashRefreshToken, newRefreshToken, refreshTokensOf } from './refresh-token'

/**
 * Spends a refresh token for a new pair. The methods of the session's origin are repeated, never extended. A token
 * presented twice ends its whole family (RFC 9700 section 4.14.2), and that end is committed although the request fails.
 * @throws InvalidTokenError unknown, expired, revoked or reused; AccountInactiveError with the token unspent
 */
export async function refresh(ctx: AuthContext, presented: string): Promise<LoginResult> {
  const tokenHash = hashRefreshToken(presented)
  return (await rotate(ctx, tokenHash)) ?? (await refuse(ctx, tokenHash))
}

async function rotate(ctx: AuthContext, tokenHash: string): Promise<LoginResult | null> {
  const at = ctx.now()
  const child = newRefreshToken()
  const rotated = await unitOfWork(ctx, (ctx) =>
    refreshTokensOf(ctx).rotate({
      tokenHash,
      child: { id: randomUUID(), tokenHash: child.tokenHash },
      childExpiresAt: after(at, ctx.settings.refreshTokenTtlSeconds),
      at,
    }),
  )
  if (!rotated) return null
  const { token, user } = rotated
  const amr = amrFromText(token.amr)
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, amr, at),
    refreshToken: child.token,
    refreshTokenExpiresAt: token.expiresAt,
  }
}

/** In units of its own, so that what it revokes stays revoked when it throws. */
async function refuse(ctx: AuthContext, tokenHash: string): Promise<never> {
  const token = await refreshTokensOf(ctx).find(tokenHash)
  if (token?.usedAt) await endReusedFamily(ctx, token)
  if (token && isLive(token, ctx.now())) await refuseInactive(ctx, token)
  throw new InvalidTokenError()
}

async function endReusedFamily(ctx: AuthContext, token: RefreshTokenRecord): Promise<void> {
  const ended = await unitOfWork(ctx, (ctx) => refreshTokensOf(ctx).revokeFamily(token.familyId, ctx.now()))
  if (ended > 0) ctx.events.emit('refresh.reused', { userId: token.userId, familyId: token.familyId })
}

function isLive(token: RefreshTokenRecord, now: Date): boolean {
  return !token.usedAt && !token.revokedAt && token.expiresAt > now
}

async function refuseInactive(ctx: AuthContext, token: RefreshTokenRecord): Promise<void> {
  const user = await ctx.store.users.find(token.userId)
  if (user && !user.isActive) throw new AccountInactiveError()
}
