import type Joi from 'joi'
import { type AuthContext, unitOfWork } from '../context'
import {
  AccountInactiveError,
  MfaCodeInvalidError,
  MfaFactorTooNewError,
  MfaNotEnrolledError,
  MfaThrottledError,
  UnauthorizedError,
} from '../errors'
import { refuseYoungFactor } from '../step-up/young-credential'
import { factorCode } from './factor-code'
import { guardedAttempt } from './guarded-attempt'
import { acceptTotpCode } from './second-factor'

/** In the body of a change: a code of the authenticator app, which makes the change final. */
export const finalCode: Joi.StringSchema = factorCode.optional()

/** How a route refuses that takes one. */
export const finalCodeRefusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaFactorTooNewError, MfaThrottledError]

/**
 * Accepts the code that a change of the account may bring along. True: no link undoes the change, because only the owner has an
 * authenticator app that was set up more than 24 hours ago (contract 24.6). The code is used up, whatever becomes of the change.
 * @throws MfaCodeInvalidError, MfaNotEnrolledError, MfaFactorTooNewError, MfaThrottledError
 */
export async function acceptFinalCode(ctx: AuthContext, userId: string, code: string | undefined): Promise<boolean> {
  if (code === undefined) return false
  const accept = () =>
    unitOfWork(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(userId)
      if (!user) throw new UnauthorizedError()
      if (!user.isActive) throw new AccountInactiveError()
      if (!ctx.settings.mfaEnabled || user.totpEnabledAt === null) throw new MfaNotEnrolledError()
      refuseYoungFactor(ctx, user)
      if (!(await acceptTotpCode(ctx, user, code))) throw new MfaCodeInvalidError()
    })
  await guardedAttempt(ctx, { userId, code }, accept)
  return true
}
