import { amrFromText } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { RefreshTokenRecord, RefreshTokenStore, UserRecord } from '../store/auth-store'
import type { ContinuedSession } from './refresh'
import { after, successorOf } from './refresh-token'

/**
 * What becomes of a token that could not be spent. One that was spent before gets its very successor once more, within the
 * grace window and while that is unused: two tabs, or a lost answer. Nothing is written for it, so there is never a second
 * successor. Later it ends its family; everything else is refused (contract section 13, Grace).
 * @throws InvalidTokenError, AccountInactiveError
 */
export async function replay(ctx: AuthContext, refreshTokens: RefreshTokenStore, presented: string, at: Date): Promise<ContinuedSession> {
  const found = await refreshTokens.findWithSuccessor(hashOpaqueToken(presented))
  if (!found) throw new InvalidTokenError()
  const { token, successor, user } = found
  if (!token.usedAt) return refuseUnspent(token, user, at)
  if (!successor || successor.usedAt || !isWithinWindow(ctx, token.usedAt, at)) return endReusedFamily(ctx, token)
  if (token.revokedAt || !isLive(successor, at)) throw new InvalidTokenError()
  if (!user.isActive) throw new AccountInactiveError()
  const again = successorOf(ctx, presented, successor.id)
  // Made under another key, or when there was no window: nobody's fault, so nothing ends.
  if (hashOpaqueToken(again) !== successor.tokenHash) throw new InvalidTokenError()
  const { expiresAt, createdAt } = successor
  return { user, amr: amrFromText(successor.amr), refreshToken: { token: again, expiresAt, createdAt } }
}

/** Over at its very end. Without a window never, also where another server's clock is ahead of ours. */
function isWithinWindow({ settings }: AuthContext, usedAt: Date, at: Date): boolean {
  const { refreshReuseGraceSeconds } = settings
  return refreshReuseGraceSeconds > 0 && after(usedAt, refreshReuseGraceSeconds) > at
}

/** In a unit of its own, so that what it revokes stays revoked when this throws. */
async function endReusedFamily(ctx: AuthContext, token: RefreshTokenRecord): Promise<never> {
  const ended = await unitOfWork(ctx, async ({ store }) => store.refreshTokens?.revokeFamily(token.familyId, ctx.now()) ?? 0)
  if (ended > 0) ctx.events.emit('refresh.reused', { userId: token.userId, familyId: token.familyId })
  throw new InvalidTokenError()
}

function refuseUnspent(token: RefreshTokenRecord, user: UserRecord, at: Date): never {
  if (isLive(token, at) && !user.isActive) throw new AccountInactiveError()
  throw new InvalidTokenError()
}

function isLive({ revokedAt, expiresAt, familyExpiresAt }: RefreshTokenRecord, at: Date): boolean {
  return !revokedAt && expiresAt > at && familyExpiresAt > at
}
