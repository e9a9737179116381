import { type AuthContext, unitOfWork } from '../context'
import { EmailLinkForbiddenError, InvalidTokenError } from '../errors'
import { findLink, spendLink } from '../mailbox/email-link'
import { isPending } from '../mailbox/is-pending'
import { recordMailboxProof } from '../mailbox/record-proof'
import { refuseLink, refusesEmailLink } from '../mailbox/refuses-email-link'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginResult, type OpenSession, type TokenPair } from '../session/finish-login'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'

/**
 * Redeems an activation link: the account becomes active, and its address proven. A deactivated account is not revived
 * (contract section 10.4).
 * @throws InvalidTokenError; EmailLinkForbiddenError with the link spent
 */
export async function activate(ctx: AuthContext, token: string, open: OpenSession<TokenPair>): Promise<LoginResult> {
  const result = await activateAnd(ctx, token, (ctx, user) => finishLogin(ctx, user, { amr: ['email'], provider: null }, open))
  announceLogin(ctx, result)
  return result
}

/** The same for a page, which can hand a session to nobody: none is made. */
export async function activateOnly(ctx: AuthContext, token: string): Promise<void> {
  await activateAnd(ctx, token, async () => undefined)
}

/** What a link is good for, as a page shows it before anything is decided; spends nothing. @throws as `activate` does */
export async function lookAtActivation(ctx: AuthContext, token: string): Promise<void> {
  const { isRefused } = await findRedeemable(ctx, token)
  if (isRefused) throw new EmailLinkForbiddenError()
}

/** What comes last happens inside the unit. */
type Ending<T> = (ctx: AuthContext, user: UserRecord) => Promise<T>

async function activateAnd<T>(ctx: AuthContext, token: string, end: Ending<T>): Promise<T> {
  const { link, isRefused } = await findRedeemable(ctx, token)
  if (isRefused) return refuseLink(ctx, link, 'ACTIVATION')
  const { ended, removed } = await redeem(ctx, link, end)
  ctx.events.emit('activation', { userId: link.userId })
  for (const provider of removed) ctx.events.emit('identity.unlinked', { userId: link.userId, provider })
  return ended
}

async function findRedeemable(ctx: AuthContext, token: string): Promise<{ link: UserTokenRecord; isRefused: boolean }> {
  const link = await findLink(ctx, token, 'ACTIVATION')
  const user = await ctx.store.users.find(link.userId)
  if (!user || !(await isPending(ctx, user))) throw new InvalidTokenError()
  return { link, isRefused: await refusesEmailLink(ctx, user) }
}

function redeem<T>(ctx: AuthContext, link: UserTokenRecord, end: Ending<T>): Promise<{ ended: T; removed: string[] }> {
  return unitOfWork(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await ctx.store.users.lock(link.userId)
    if (!user || !(await isPending(ctx, user))) throw new InvalidTokenError()
    await spendLink(ctx, link, 'ACTIVATION')
    await ctx.store.userTokens.consumeAllForUser(user.id, now, 'ACTIVATION')
    const changes = { isActive: true, activatedAt: now }
    const removed = await recordMailboxProof(ctx, user, changes)
    const activated = { ...user, ...changes, emailVerifiedAt: now, updatedAt: now }
    return { ended: await end(ctx, activated), removed }
  })
}
