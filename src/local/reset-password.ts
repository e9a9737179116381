import { type AuthContext, unitOfWork } from '../context'
import { EmailLinkForbiddenError, InvalidTokenError } from '../errors'
import type { Locale } from '../http/locale'
import { findLink, spendLink } from '../mailbox/email-link'
import { recordMailboxProof } from '../mailbox/record-proof'
import { refuseLink, refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailNotice } from '../mailbox/send-mail'
import { checkPassword } from '../passwords/check-password'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginResult, type OpenSession, type TokenPair } from '../session/finish-login'
import { endOtherSessions } from '../session/log-out'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'

export interface ResetInput {
  token: string
  newPassword: string
  /** Ends every session of the account. Default true. */
  revokeSessions?: boolean | undefined
  /** Of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Redeems a reset link: a new password, a proven address, and everything that was open before is closed. The policy is
 * checked before the link is spent, so that a refused password costs nothing.
 * @throws InvalidTokenError, ValidationError (the password); EmailLinkForbiddenError with the link spent
 */
export async function resetPassword(ctx: AuthContext, input: ResetInput, open: OpenSession<TokenPair>): Promise<LoginResult> {
  const result = await resetAnd(ctx, input, (ctx, user) => finishLogin(ctx, user, { amr: ['email'], provider: null }, open))
  announceLogin(ctx, result)
  return result
}

/** The same for a page, which can hand a session to nobody: none is made. */
export async function resetOnly(ctx: AuthContext, input: ResetInput): Promise<void> {
  await resetAnd(ctx, input, async () => undefined)
}

/** What a link is good for, as a page shows it before anything is decided; spends nothing. @throws as `resetPassword` does */
export async function lookAtReset(ctx: AuthContext, token: string): Promise<void> {
  const { user } = await findRedeemable(ctx, token)
  if (await refusesEmailLink(ctx, user)) throw new EmailLinkForbiddenError()
}

/** What comes last happens inside the unit. */
type Ending<T> = (ctx: AuthContext, user: UserRecord) => Promise<T>

async function resetAnd<T>(ctx: AuthContext, input: ResetInput, end: Ending<T>): Promise<T> {
  const { token, newPassword, revokeSessions = true, locale } = input
  const { link, user: seen } = await findRedeemable(ctx, token)
  await checkPassword(ctx, newPassword, seen)
  if (await refusesEmailLink(ctx, seen)) return refuseLink(ctx, link, 'PASSWORD_RESET')
  const hashedPassword = await ctx.hasher.hash(newPassword)
  const { user, ended, removed } = await redeem(ctx, link, { hashedPassword, revokeSessions }, end)
  ctx.events.emit('password.changed', { userId: user.id, by: 'reset' })
  for (const provider of removed) ctx.events.emit('identity.unlinked', { userId: user.id, provider })
  mailNotice(ctx, user, 'password_changed', locale)
  return ended
}

async function findRedeemable(ctx: AuthContext, token: string): Promise<{ link: UserTokenRecord; user: UserRecord }> {
  const link = await findLink(ctx, token, 'PASSWORD_RESET')
  const user = await ctx.store.users.find(link.userId)
  if (!user?.isActive) throw new InvalidTokenError()
  return { link, user }
}

interface Redeemed<T> {
  user: UserRecord
  ended: T
  removed: string[]
}

function redeem<T>(
  ctx: AuthContext,
  link: UserTokenRecord,
  { hashedPassword, revokeSessions }: { hashedPassword: string; revokeSessions: boolean },
  end: Ending<T>,
): Promise<Redeemed<T>> {
  return unitOfWork(ctx, async (ctx) => {
    const now = ctx.now()
    const locked = await ctx.store.users.lock(link.userId)
    if (!locked?.isActive) throw new InvalidTokenError()
    await spendLink(ctx, link, 'PASSWORD_RESET')
    // Links of every kind: a change of address that a stranger began would otherwise outlive the owner's reset.
    await ctx.store.userTokens.consumeAllForUser(locked.id, now)
    const removed = await recordMailboxProof(ctx, locked, { hashedPassword, passwordSetAt: now })
    if (revokeSessions) await endOtherSessions(ctx, locked.id)
    const user = { ...locked, hashedPassword, passwordSetAt: now, emailVerifiedAt: now, updatedAt: now }
    return { user, ended: await end(ctx, user), removed }
  })
}
