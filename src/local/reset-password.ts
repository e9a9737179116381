import { type AuthContext, unitOfWork } from '../context'
import { InvalidTokenError } from '../errors'
import { findLink, spendLink } from '../mailbox/email-link'
import { recordMailboxProof } from '../mailbox/record-proof'
import { mailNotice } from '../mailbox/send-mail'
import { checkPassword } from '../passwords/check-password'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginResult } from '../session/finish-login'
import { endSessions } from '../session/log-out'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'
import { refuseLink } from './activate'
import { refusesEmailLink } from './refuses-email-link'

export interface ResetInput {
  token: string
  newPassword: string
  /** Ends every session of the account. Default true. */
  revokeSessions?: boolean | undefined
}

/**
 * Redeems a reset link: a new password, a proven address, and everything that was open before is closed. The policy is
 * checked before the link is spent, so that a refused password costs nothing.
 * @throws InvalidTokenError, ValidationError (the password); EmailLinkForbiddenError with the link spent
 */
export async function resetPassword(ctx: AuthContext, { token, newPassword, revokeSessions = true }: ResetInput): Promise<LoginResult> {
  const link = await findLink(ctx, token, 'PASSWORD_RESET')
  const seen = await ctx.store.users.find(link.userId)
  if (!seen?.isActive) throw new InvalidTokenError()
  await checkPassword(ctx, newPassword, seen)
  if (await refusesEmailLink(ctx, seen)) return refuseLink(ctx, link, 'PASSWORD_RESET')
  const hashedPassword = await ctx.hasher.hash(newPassword)
  const { user, result, removed } = await redeem(ctx, link, hashedPassword, revokeSessions)
  ctx.events.emit('password.changed', { userId: user.id, by: 'reset' })
  for (const provider of removed) ctx.events.emit('identity.unlinked', { userId: user.id, provider })
  announceLogin(ctx, result)
  mailNotice(ctx, user, 'password_changed')
  return result
}

interface Redeemed {
  user: UserRecord
  result: LoginResult
  removed: string[]
}

function redeem(ctx: AuthContext, link: UserTokenRecord, hashedPassword: string, revokeSessions: boolean): Promise<Redeemed> {
  return unitOfWork(ctx, async (ctx) => {
    const now = ctx.now()
    const locked = await ctx.store.users.lock(link.userId)
    if (!locked?.isActive) throw new InvalidTokenError()
    await spendLink(ctx, link, 'PASSWORD_RESET')
    // Links of every kind: a change of address that a stranger began would otherwise outlive the owner's reset.
    await ctx.store.userTokens.consumeAllForUser(locked.id, now)
    const removed = await recordMailboxProof(ctx, locked, { hashedPassword, passwordSetAt: now })
    if (revokeSessions) await endSessions(ctx, locked.id)
    const user = { ...locked, hashedPassword, passwordSetAt: now, emailVerifiedAt: now, updatedAt: now }
    return { user, result: await finishLogin(ctx, user, ['email']), removed }
  })
}
