import { type AuthContext, unitOfWork } from '../context'
import { forgetWrongCodes } from '../factor/code-limits'
import { mailNotice } from '../mailbox/send-mail'
import { endOtherSessions } from '../session/log-out'
import { type ActingAdmin, lockTarget } from './lock-target'

/**
 * Takes the second factor off an account whose owner lost it, with its recovery codes, also where MFA is off by now.
 * Challenges and links begun with it end by what they carry (`accountDigest`), and so does every session. The owner is told.
 * Without a factor nothing ends; an enrolment that waits is forgotten.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError
 */
export async function resetMfa(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  const { user, hadFactor } = await unitOfWork(ctx, async (ctx) => {
    const user = await lockTarget(ctx, userId, acting, { takesPower: true })
    const hadFactor = user.totpEnabledAt !== null
    if (hadFactor || user.totpSecret !== null)
      await ctx.store.users.update(userId, { totpSecret: null, totpEnabledAt: null, totpLastStep: null, updatedAt: ctx.now() })
    await ctx.store.recoveryCodes?.deleteForUser(userId)
    if (hadFactor) await endOtherSessions(ctx, userId)
    return { user, hadFactor }
  })
  await forgetWrongCodes(ctx, userId)
  if (!hadFactor) return
  ctx.events.emit('mfa.disabled', { userId })
  mailNotice(ctx, user, 'mfa_disabled')
}
