import { mailNotice } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import { ConfigurationError, MfaCodeInvalidError } from '../core/errors'
import { readTypedCode } from '../core/typed-code'
import type { Locale } from '../http/locale'
import { hasMatureFactor } from '../sessions/reauthentication/credential-age'
import type { RecoveryCodeStore, UserRecord } from '../store/auth-store'
import { hashRecoveryCode, readRecoveryCode } from './recovery-codes'
import { openSecret, sealPlain } from './secret-box'
import { findStep } from './totp'

/** The kind of factor that the person showed: a code of the authenticator app, a recovery code or a passkey. */
export type Factor = 'totp' | 'recovery_code' | 'passkey'

/**
 * Accepts a TOTP code or a recovery code of an active factor. Each code is accepted only once. After a TOTP code was accepted, every route
 * rejects codes of that 30-second step and of earlier steps. Call the function inside the transaction of the confirmed action. That
 * transaction must have locked the user's row.
 * @throws MfaCodeInvalidError
 */
export async function acceptSecondFactor(ctx: AuthContext, user: UserRecord, typed: string): Promise<Exclude<Factor, 'passkey'>> {
  const code = readTypedCode(typed)
  if (await acceptTotpCode(ctx, user, code)) return 'totp'
  if (await acceptRecoveryCode(ctx, user, code)) return 'recovery_code'
  throw new MfaCodeInvalidError()
}

/**
 * Returns true for a code of an authenticator app that was set up at least 24 hours ago. A change that this code confirms gets no undo link
 * (`Irreversibility`), because usually only the owner has such an app. Returns false for a recovery code, because an attacker may have created new
 * recovery codes.
 */
export function isOldFactor(ctx: AuthContext, user: UserRecord, factor: Factor): boolean {
  return factor === 'totp' && hasMatureFactor(ctx, user)
}

/** Emits the event of a used recovery code. Call the function after the commit. */
export function emitFactor({ events }: AuthContext, userId: string, factor: Factor): void {
  if (factor === 'recovery_code') events.emit('recovery_code.used', { userId })
}

/**
 * Emits the event of a used recovery code and notifies the owner. Call the function only if no other notice reports the use of the code
 * (`AcceptedFactor`).
 */
export function announceFactor(ctx: AuthContext, user: UserRecord, factor: Factor, locale?: Locale): void {
  emitFactor(ctx, user.id, factor)
  if (factor === 'recovery_code') mailNotice(ctx, user, 'recovery_code_used', locale)
}

/**
 * Returns true for a TOTP code of the user's active or pending secret, if the code's time step was not accepted before. Marks the step as
 * accepted. If `mfaSecretKey` is set and the secret is stored as plain text, also encrypts the secret.
 */
export async function acceptTotpCode(ctx: AuthContext, user: UserRecord, typed: string): Promise<boolean> {
  const step = stepOfCode(ctx, user, typed)
  if (step === null || !(await ctx.store.users.advanceTotpStep(user.id, step))) return false
  await sealPlainSecret(ctx, user)
  return true
}

/**
 * Encrypts a plain secret in the row and in the given record, so that an undo row of this transaction never contains the plain secret.
 * `updatedAt` stays, because without the column `passwordSetAt` its time counts as a change of the password.
 */
async function sealPlainSecret(ctx: AuthContext, user: UserRecord): Promise<void> {
  const sealed = user.totpSecret === null ? null : sealPlain(ctx.mfaSecretKeys, user.id, user.totpSecret)
  if (sealed === user.totpSecret) return
  await ctx.store.users.update(user.id, { totpSecret: sealed })
  user.totpSecret = sealed
}

/** Returns the 30-second step of a code, even if the step was accepted before. Returns null if the code does not belong to this secret. */
export function stepOfCode(ctx: AuthContext, { id, totpSecret }: Pick<UserRecord, 'id' | 'totpSecret'>, typed: string): number | null {
  const secret = totpSecret === null ? null : openSecret(ctx.mfaSecretKeys, id, totpSecret)
  return secret === null ? null : findStep(secret, readTypedCode(typed), { now: ctx.now(), window: ctx.settings.mfaVerifyWindow })
}

async function acceptRecoveryCode(ctx: AuthContext, user: UserRecord, typed: string): Promise<boolean> {
  const code = readRecoveryCode(typed)
  if (code === null || !ctx.store.recoveryCodes) return false
  return ctx.store.recoveryCodes.consume(user.id, hashRecoveryCode(user.id, code), ctx.now())
}

export function recoveryCodesOf(ctx: AuthContext): RecoveryCodeStore {
  const { recoveryCodes } = ctx.store
  if (!recoveryCodes) throw new ConfigurationError('The store has no recovery codes; wire `recoveryCodes` in your AuthStore.')
  return recoveryCodes
}
