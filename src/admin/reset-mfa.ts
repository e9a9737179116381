import { type AuthContext, unitOfWork } from '../context'
import { forgetWrongCodes } from '../factor/code-limits'
import { removePasskeys } from '../first-proof/remove-passkeys'
import { mailNotice } from '../mailbox/send-mail'
import { endOtherSessions } from '../session/log-out'
import { type ActingAdmin, lockTarget } from './lock-target'

export interface MfaReset {
  /** Also removes the account's passkeys: if the owner lost them all, or if they belong to an attacker. Default false. */
  passkeys?: boolean | undefined
}

/**
 * Removes the second factor and its recovery codes from an account whose owner lost it, also if MFA is off by now. Revokes every session,
 * and invalidates the second-factor steps and links that began with the factor (`accountDigest`). Sends the owner a notice. If there is no
 * factor, nothing is revoked; an unfinished enrolment is deleted.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError
 */
export async function resetMfa(
  ctx: AuthContext,
  userId: string,
  acting?: ActingAdmin,
  { passkeys: takesPasskeys = false }: MfaReset = {},
): Promise<void> {
  const { user, hadFactor, removed } = await unitOfWork(ctx, async (ctx) => {
    const user = await lockTarget(ctx, userId, acting, { takesPower: true })
    const hadFactor = user.totpEnabledAt !== null
    if (hadFactor || user.totpSecret !== null)
      await ctx.store.users.update(userId, { totpSecret: null, totpEnabledAt: null, totpLastStep: null, updatedAt: ctx.now() })
    await ctx.store.recoveryCodes?.deleteForUser(userId)
    const removed = takesPasskeys ? await removePasskeys(ctx, userId) : []
    if (hadFactor || removed.length > 0) await endOtherSessions(ctx, userId)
    return { user, hadFactor, removed }
  })
  await forgetWrongCodes(ctx, userId)
  if (hadFactor) ctx.events.emit('mfa.disabled', { userId })
  for (const passkeyId of removed) ctx.events.emit('passkey.removed', { userId, passkeyId })
  const removedPasskeys = removed.length > 0
  if (hadFactor) mailNotice(ctx, user, 'mfa_disabled', undefined, { removedPasskeys })
  else if (removedPasskeys) mailNotice(ctx, user, 'passkey_removed')
}
