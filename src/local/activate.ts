import { type AuthContext, unitOfWork } from '../context'
import { EmailLinkForbiddenError, InvalidTokenError } from '../errors'
import { findLink, spendLink } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { recordMailboxProof } from '../mailbox/record-proof'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginResult } from '../session/finish-login'
import type { UserTokenRecord } from '../store/auth-store'
import { refusesEmailLink } from './refuses-email-link'

/**
 * Redeems an activation link: the account becomes active, and its address proven. A deactivated account is not revived
 * (contract section 10.4).
 * @throws InvalidTokenError; EmailLinkForbiddenError with the link spent
 */
export async function activate(ctx: AuthContext, token: string): Promise<LoginResult> {
  const link = await findLink(ctx, token, 'ACTIVATION')
  const seen = await ctx.store.users.find(link.userId)
  if (!seen || !(await isPending(ctx, seen))) throw new InvalidTokenError()
  if (await refusesEmailLink(ctx, seen)) return refuseLink(ctx, link, 'ACTIVATION')
  const { result, removed } = await redeem(ctx, link)
  ctx.events.emit('activation', { userId: result.userId })
  for (const provider of removed) ctx.events.emit('identity.unlinked', { userId: result.userId, provider })
  announceLogin(ctx, result)
  return result
}

function redeem(ctx: AuthContext, link: UserTokenRecord): Promise<{ result: LoginResult; removed: string[] }> {
  return unitOfWork(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await ctx.store.users.lock(link.userId)
    if (!user || !(await isPending(ctx, user))) throw new InvalidTokenError()
    await spendLink(ctx, link, 'ACTIVATION')
    await ctx.store.userTokens.consumeAllForUser(user.id, now, 'ACTIVATION')
    const removed = await recordMailboxProof(ctx, user, { isActive: true, activatedAt: now })
    const activated = { ...user, isActive: true, activatedAt: now, emailVerifiedAt: now, updatedAt: now }
    return { result: await finishLogin(ctx, activated, ['email']), removed }
  })
}

/** The refusal persists: the link is spent and committed, and nothing else has changed. @throws EmailLinkForbiddenError */
export async function refuseLink(ctx: AuthContext, link: UserTokenRecord, purpose: 'ACTIVATION' | 'PASSWORD_RESET'): Promise<never> {
  await unitOfWork(ctx, (ctx) => spendLink(ctx, link, purpose))
  throw new EmailLinkForbiddenError()
}
