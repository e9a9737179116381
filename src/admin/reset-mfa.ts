import { type AuthContext, passkeysOf, unitOfWork } from '../context'
import { forgetWrongCodes } from '../factor/code-limits'
import { mailNotice } from '../mailbox/send-mail'
import { endOtherSessions } from '../session/log-out'
import { type ActingAdmin, lockTarget } from './lock-target'

export interface MfaReset {
  /** Removes the account's passkeys, too: of an owner who lost them all, or whose they are not. Default false. */
  passkeys?: boolean | undefined
}

/**
 * Takes the second factor off an account whose owner lost it, with its recovery codes, also where MFA is off by now.
 * Challenges and links begun with it end by what they carry (`accountDigest`), and so does every session. The owner is told.
 * Where nothing is taken off nothing ends; an enrolment that waits is forgotten.
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
  if (hadFactor) {
    ctx.events.emit('mfa.disabled', { userId })
    mailNotice(ctx, user, 'mfa_disabled')
  }
  for (const passkeyId of removed) ctx.events.emit('passkey.removed', { userId, passkeyId })
  if (removed.length > 0) mailNotice(ctx, user, 'passkey_removed')
}

/** Returns their ids. Nothing where there are no passkeys. */
async function removePasskeys(ctx: AuthContext, userId: string): Promise<string[]> {
  const passkeys = passkeysOf(ctx)
  const ids = ((await passkeys?.listForUser(userId)) ?? []).map(({ id }) => id)
  if (ids.length > 0) await passkeys?.deleteForUser(userId)
  return ids
}
