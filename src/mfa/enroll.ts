import { renderSVG } from 'uqr'
import { type AuthContext, unitOfWork } from '../context'
import { MfaAlreadyEnrolledError, MfaNotEnrolledError, UnauthorizedError } from '../errors'
import { guardedAttempt } from '../factor/guarded-attempt'
import { hashRecoveryCode, newRecoveryCodes } from '../factor/recovery-codes'
import { acceptSecondFactor, announceFactor, isOldFactor, recoveryCodesOf } from '../factor/second-factor'
import { sealSecret } from '../factor/secret-box'
import { newTotpSecret, provisioningUri } from '../factor/totp'
import type { Locale } from '../http/locale'
import { holdSession } from '../step-up/fresh-session'
import { refuseYoungFactor } from '../step-up/young-credential'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { beginEnrolment } from './enrolment'

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

export interface EnrolmentOptions {
  /** The only one that may confirm it; null: any of the account. */
  session?: SessionRecord | null
  check?: UserCheck
  /** A code of the active factor, which the new one replaces. A recovery code does, too. */
  code?: string | undefined
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Begins an enrolment: a pending secret, which satisfies nothing until a code of it confirms it. A further call begins anew. An active
 * factor is replaced by one of its codes: it stays active, with its recovery codes, until the new one is confirmed.
 * @throws UnauthorizedError (the account is gone or inactive), InvalidTokenError (the session has ended), MfaAlreadyEnrolledError (a factor
 *   is active, and no code was shown); with a code MfaNotEnrolledError, MfaCodeInvalidError, MfaThrottledError, MfaFactorTooNewError
 */
export async function enrollTotp(
  ctx: AuthContext,
  userId: string,
  { session = null, check = () => undefined, code, locale }: EnrolmentOptions = {},
): Promise<Enrolment> {
  const secret = newTotpSecret()
  const recoveryCodes = newRecoveryCodes(ctx.settings.mfaRecoveryCodesCount)
  const hashes = recoveryCodes.map((code) => hashRecoveryCode(userId, code))
  const begun = { session, check, sealed: sealSecret(ctx.mfaSecretKeys, userId, secret), hashes }
  const user = code === undefined ? await beginFirst(ctx, userId, begun) : await beginReplacement(ctx, userId, begun, { code, locale })
  const uri = provisioningUri({ secret, issuer: ctx.settings.mfaIssuer ?? '', account: user.email })
  return { secret, provisioningUri: uri, qrSvg: renderSVG(uri, { ecc: 'M' }), recoveryCodes }
}

interface Begun {
  readonly session: SessionRecord | null
  readonly check: UserCheck
  readonly sealed: string
  readonly hashes: readonly string[]
}

function beginFirst(ctx: AuthContext, userId: string, begun: Begun): Promise<UserRecord> {
  return unitOfWork(ctx, async (ctx) => {
    const user = await lockActive(ctx, userId)
    if (user.totpEnabledAt) throw new MfaAlreadyEnrolledError()
    await holdSession(ctx, begun.session)
    await begun.check(ctx, user)
    await ctx.store.users.update(userId, { totpSecret: begun.sealed, totpLastStep: null })
    await beginEnrolment(ctx, userId, begun.sealed, begun.session)
    await recoveryCodesOf(ctx).replaceForUser(userId, begun.hashes)
    return user
  })
}

/** The old factor is asked for until the new one is confirmed: at no moment is the mailbox alone enough (contract 24.6). */
async function beginReplacement(
  ctx: AuthContext,
  userId: string,
  begun: Begun,
  { code, locale }: { code: string; locale: Locale | undefined },
): Promise<UserRecord> {
  const { user, factor } = await guardedAttempt(ctx, { userId, code, locale }, () =>
    unitOfWork(ctx, async (ctx) => {
      const user = await lockActive(ctx, userId)
      if (!user.totpEnabledAt) throw new MfaNotEnrolledError()
      await holdSession(ctx, begun.session)
      await begun.check(ctx, user)
      refuseYoungFactor(ctx, user)
      const factor = await acceptSecondFactor(ctx, user, code)
      const replacement = { secret: begun.sealed, recoveryCodes: begun.hashes, isFinal: isOldFactor(ctx, user, factor) }
      await beginEnrolment(ctx, userId, replacement, begun.session)
      return { user, factor }
    }),
  )
  announceFactor(ctx, user, factor, locale)
  return user
}

async function lockActive(ctx: AuthContext, userId: string): Promise<UserRecord> {
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  return user
}
