import type { AuthContext } from '../context'
import { ConfigurationError, MfaCodeInvalidError } from '../errors'
import type { Locale } from '../http/locale'
import { mailNotice } from '../mailbox/send-mail'
import type { RecoveryCodeStore, UserRecord } from '../store/auth-store'
import { hashRecoveryCode, readRecoveryCode } from './recovery-codes'
import { openSecret } from './secret-box'
import { findStep } from './totp'

/** What a code turned out to be. */
export type Factor = 'totp' | 'recovery_code'

/**
 * Accepts one TOTP or recovery code of an active factor, once: a step that was accepted, or one before it, is refused on
 * every route, and so is a spent recovery code. Inside the unit of what it allows, which holds the user's row.
 * @throws MfaCodeInvalidError
 */
export async function acceptSecondFactor(ctx: AuthContext, user: UserRecord, typed: string): Promise<Factor> {
  const code = stripped(typed)
  if (await acceptTotpCode(ctx, user, code)) return 'totp'
  if (await acceptRecoveryCode(ctx, user, code)) return 'recovery_code'
  throw new MfaCodeInvalidError()
}

/** A spent recovery code is told, whatever it was spent on: to observers and to the owner. After the commit. */
export function announceFactor(ctx: AuthContext, user: UserRecord, factor: Factor, locale?: Locale): void {
  if (factor !== 'recovery_code') return
  ctx.events.emit('recovery_code.used', { userId: user.id })
  mailNotice(ctx, user, 'recovery_code_used', locale)
}

/** A TOTP code of the user's secret, active or pending, whose step was not accepted before. */
export async function acceptTotpCode(ctx: AuthContext, user: UserRecord, typed: string): Promise<boolean> {
  const secret = user.totpSecret === null ? null : openSecret(ctx.mfaSecretKeys, user.id, user.totpSecret)
  if (secret === null) return false
  const step = findStep(secret, stripped(typed), { now: ctx.now(), window: ctx.settings.mfaVerifyWindow })
  return step !== null && ctx.store.users.advanceTotpStep(user.id, step)
}

async function acceptRecoveryCode(ctx: AuthContext, user: UserRecord, typed: string): Promise<boolean> {
  const code = readRecoveryCode(typed)
  if (code === null || !ctx.store.recoveryCodes) return false
  return ctx.store.recoveryCodes.consume(user.id, hashRecoveryCode(user.id, code), ctx.now())
}

/** Spaces and dashes are how codes are written down (contract section 12, MFA). */
function stripped(typed: string): string {
  return typed.replace(/[\s-]/g, '')
}

export function recoveryCodesOf(ctx: AuthContext): RecoveryCodeStore {
  const { recoveryCodes } = ctx.store
  if (!recoveryCodes) throw new ConfigurationError('The store has no recovery codes; wire `recoveryCodes` in your AuthStore.')
  return recoveryCodes
}
