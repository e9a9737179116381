import { renderSVG } from 'uqr'
import { type AuthContext, unitOfWork } from '../context'
import { MfaAlreadyEnrolledError, UnauthorizedError } from '../errors'
import type { UserRecord } from '../store/auth-store'
import { hashRecoveryCode, newRecoveryCodes } from './recovery-codes'
import { recoveryCodesOf } from './second-factor'
import { sealSecret } from './secret-box'
import { newTotpSecret, provisioningUri } from './totp'

/** Shown once, and never again: what an authenticator app needs, and the codes for the day it is lost. */
export interface Enrolment {
  /** Base32. */
  secret: string
  provisioningUri: string
  /** An SVG document. */
  qrSvg: string
  recoveryCodes: string[]
}

/** Throws unless the account, as its locked row shows it, may do this; `ctx` is the unit's. */
export type UserCheck = (ctx: AuthContext, user: UserRecord) => Promise<void> | void

/**
 * Begins an enrolment: a pending secret, which satisfies nothing until a code of it confirms it. A further call begins
 * anew; over an active factor it is refused.
 * @throws UnauthorizedError (the account is gone or inactive), MfaAlreadyEnrolledError
 */
export async function enrollTotp(ctx: AuthContext, userId: string, check: UserCheck = () => undefined): Promise<Enrolment> {
  const secret = newTotpSecret()
  const recoveryCodes = newRecoveryCodes(ctx.settings.mfaRecoveryCodesCount)
  const user = await unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    if (!user?.isActive) throw new UnauthorizedError()
    if (user.totpEnabledAt) throw new MfaAlreadyEnrolledError()
    await check(ctx, user)
    await ctx.store.users.update(userId, { totpSecret: sealSecret(ctx.mfaSecretKeys, userId, secret), totpLastStep: null })
    await storeRecoveryCodes(ctx, userId, recoveryCodes)
    return user
  })
  const uri = provisioningUri({ secret, issuer: ctx.settings.mfaIssuer ?? '', account: user.email })
  return { secret, provisioningUri: uri, qrSvg: renderSVG(uri, { ecc: 'M' }), recoveryCodes }
}

/** The user's only set from now on. */
export function storeRecoveryCodes(ctx: AuthContext, userId: string, codes: readonly string[]): Promise<void> {
  return recoveryCodesOf(ctx).replaceForUser(
    userId,
    codes.map((code) => hashRecoveryCode(userId, code)),
  )
}
