import { type AuthContext, transaction } from '../../context'
import { InvalidTokenError } from '../../core/errors'
import { isLeaving } from '../../sessions/account-state'
import { isOfRequest, readRestoreToken } from '../../sessions/restore-token'
import type { UserRecord } from '../../store/auth-store'
import { consumeLink, findLink } from '../email-links/email-link'

interface WayBack {
  readonly userId: string
  isGood(user: UserRecord): boolean
  /** Inside the transaction. */
  use(ctx: AuthContext): Promise<void>
}

/**
 * Opens a leaving account again, without a session. The time of the activation is new, so that nothing from before the deletion is valid.
 * @param token of the mail, or of the answer to a right login
 * @throws InvalidTokenError
 */
export async function restoreAccount(ctx: AuthContext, token: string): Promise<void> {
  const way = await findWayBack(ctx, token)
  await transaction(ctx, async (ctx) => {
    requireLeaving(way, await ctx.store.users.lock(way.userId))
    const now = ctx.now()
    await way.use(ctx)
    await ctx.store.userTokens.consumeAllForUser(way.userId, now, 'ACCOUNT_DELETION')
    await ctx.store.users.update(way.userId, { isActive: true, activatedAt: now, deletionRequestedAt: null, updatedAt: now })
    ctx.events.emit('account.deletion_cancelled', { userId: way.userId })
  })
}

/** What the page shows before the person decides. Uses nothing up. @throws InvalidTokenError */
export async function lookAtRestore(ctx: AuthContext, token: string): Promise<UserRecord> {
  const way = await findWayBack(ctx, token)
  return requireLeaving(way, await ctx.store.users.find(way.userId))
}

function requireLeaving(way: WayBack, user: UserRecord | null): UserRecord {
  if (!user || !isLeaving(user) || !way.isGood(user)) throw new InvalidTokenError()
  return user
}

async function findWayBack(ctx: AuthContext, token: string): Promise<WayBack> {
  const ofLogin = readRestoreToken(ctx, token)
  if (ofLogin) return { userId: ofLogin.userId, isGood: (user) => isOfRequest(ctx, user, ofLogin), use: async () => undefined }
  const link = await findLink(ctx, token, 'ACCOUNT_DELETION')
  return { userId: link.userId, isGood: () => true, use: (ctx) => consumeLink(ctx, link, 'ACCOUNT_DELETION') }
}
