import { mailNotice } from '../accounts/email-links/send-mail'
import { removePasskeys } from '../accounts/email-verification/remove-passkeys'
import { type AuthContext, transaction } from '../context'
import { forgetWrongCodes } from '../second-factor/code-limits'
import { endOtherSessions } from '../sessions/log-out'
import { type ActingAdmin, lockTarget } from './lock-target'

export interface MfaReset {
  /**
   * True: also removes the account's passkeys. Use this option if the owner lost the passkeys, or if an attacker added passkeys. Default
   * false.
   */
  passkeys?: boolean | undefined
}

/**
 * Removes the second factor and its recovery codes from an account whose owner lost the factor. Works even if `mfaEnabled` is off. Revokes
 * every session. Unfinished second-factor logins and provider links become invalid (`accountDigest`). Sends the owner a notice. If nothing
 * was removed, the function revokes nothing, and only deletes an unfinished enrolment.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError
 */
export async function resetMfa(
  ctx: AuthContext,
  userId: string,
  acting?: ActingAdmin,
  { passkeys: takesPasskeys = false }: MfaReset = {},
): Promise<void> {
  const { user, hadFactor, removed } = await transaction(ctx, async (ctx) => {
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
