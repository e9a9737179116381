import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import Joi from 'joi'
import speakeasy from 'speakeasy'
import { mailNotice } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import {
  AccountInactiveError,
  ConfigurationError,
  MfaCodeInvalidError,
  MfaNotEnrolledError,
  MfaThrottledError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../core/errors'
import { readTypedCode } from '../core/opaque-token'
import { text } from '../http/input'
import type { Locale } from '../http/locale'
import { hasMatureFactor } from '../sessions/reauthentication/methods'
import type { RecoveryCodeStore, UserRecord } from '../store/auth-store'
import { openSecret, sealPlain } from './secret-box'

export type Factor = 'totp' | 'recovery_code' | 'passkey'

/**
 * Accepts each code once: after a TOTP code, every route rejects codes of that 30-second step and of earlier steps. Call it inside the
 * transaction of the confirmed action, which must have locked the user's row.
 * @throws MfaCodeInvalidError
 */
export async function acceptSecondFactor(ctx: AuthContext, user: UserRecord, typed: string): Promise<Exclude<Factor, 'passkey'>> {
  const code = readTypedCode(typed)
  if (await acceptTotpCode(ctx, user, code)) return 'totp'
  if (await acceptRecoveryCode(ctx, user, code)) return 'recovery_code'
  throw new MfaCodeInvalidError()
}

/** Usually only the owner has an app older than 24 hours. False for a recovery code: an attacker may have created new ones. */
export function isOldFactor(ctx: AuthContext, user: UserRecord, factor: Factor): boolean {
  return factor === 'totp' && hasMatureFactor(ctx, user)
}

/** Call it after the commit. */
export function emitFactor({ events }: AuthContext, userId: string, factor: Factor): void {
  if (factor === 'recovery_code') events.emit('recovery_code.used', { userId })
}

/** Call it only if no other notice reports the use of the code (`AcceptedFactor`). */
export function announceFactor(ctx: AuthContext, user: UserRecord, factor: Factor, locale?: Locale): void {
  emitFactor(ctx, user.id, factor)
  if (factor === 'recovery_code') mailNotice(ctx, user, 'recovery_code_used', locale)
}

/** True if the code's time step was not accepted before. Also encrypts a secret in plain text, if `mfaSecretKey` is set. */
export async function acceptTotpCode(ctx: AuthContext, user: UserRecord, typed: string): Promise<boolean> {
  const step = stepOfCode(ctx, user, typed)
  if (step === null || !(await ctx.store.users.advanceTotpStep(user.id, step))) return false
  await sealPlainSecret(ctx, user)
  return true
}

/** By the row that was read. Only `acceptTotpCode` accepts a code, so two requests can both see true. */
export function isUnusedTotpCode(ctx: AuthContext, user: UserRecord, typed: string): boolean {
  const step = stepOfCode(ctx, user, typed)
  return step !== null && (user.totpLastStep === null || step > user.totpLastStep)
}

/** No undo row may have a plain secret. `updatedAt` stays: without `passwordSetAt`, it counts as a change of the password. */
async function sealPlainSecret(ctx: AuthContext, user: UserRecord): Promise<void> {
  const sealed = user.totpSecret === null ? null : sealPlain(ctx.mfaSecretKeys, user.id, user.totpSecret)
  if (sealed === user.totpSecret) return
  await ctx.store.users.update(user.id, { totpSecret: sealed })
  user.totpSecret = sealed
}

/** Also of a step that was accepted before. Null if the code does not belong to this secret. */
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

/** RFC 6238 section 5.2. */
const stepSeconds = 30

/** 160 random bits in base32 (RFC 4226 section 4, R6). The characters of speakeasy's secrets are not equally probable. */
export function newTotpSecret(): string {
  return base32(randomBytes(20))
}

export function stepAt(instant: Date): number {
  return Math.floor(instant.getTime() / 1000 / stepSeconds)
}

/**
 * Compares every step, so that the time reveals nothing. speakeasy only computes the code of a step: its own check accepts '+72814' and
 * '72814x' for '072814', and secrets that it cannot decode.
 */
export function findStep(secret: string, code: string, { now, window }: { now: Date; window: number }): number | null {
  if (!/^[A-Z2-7]{32,}$/.test(secret) || !/^[0-9]{6}$/.test(code)) return null
  let found: number | null = null
  for (let step = stepAt(now) - window; step <= stepAt(now) + window; step++) {
    const isIts = timingSafeEqual(Buffer.from(codeAt(secret, step)), Buffer.from(code))
    if (isIts) found = step
  }
  return found
}

/** The step is the counter of RFC 4226 section 5.3. */
function codeAt(secret: string, step: number): string {
  return speakeasy.hotp({ secret, encoding: 'base32', counter: step, digits: 6 })
}

/** For a QR code or a link. */
export function provisioningUri({ secret, issuer, account }: { secret: string; issuer: string; account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const query = Object.entries({ secret, issuer, algorithm: 'SHA1', digits: '6', period: String(stepSeconds) })
  // URLSearchParams would write spaces as `+`, and several apps show the `+`.
  return `otpauth://totp/${label}?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 section 6. The length must be a multiple of five bytes, so that no padding is needed. */
export function base32(bytes: Buffer): string {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{5}/g) ?? []).map((group) => alphabet[Number.parseInt(group, 2)]).join('')
}

/** Characters without dashes. Nobody can guess 125 bits, so a plain SHA-256 is enough. In groups, because people write codes down. */
const characters = 25
const groups = /.{5}/g

export function newRecoveryCodes(count: number): string[] {
  return Array.from({ length: count }, () => (base32(randomBytes(20)).slice(0, characters).match(groups) ?? []).join('-'))
}

/** Null if the text cannot be a recovery code. */
export function readRecoveryCode(typed: string): string | null {
  const code = typed.toUpperCase()
  return code.length === characters && /^[A-Z2-7]+$/.test(code) ? code : null
}

/** Any other text counts as a code of an authenticator app. */
export function isRecoveryCode(typed: string): boolean {
  return readRecoveryCode(readTypedCode(typed)) !== null
}

/** With the user, so that equal codes of two users have different hashes. */
export function hashRecoveryCode(userId: string, code: string): string {
  return createHash('sha256')
    .update(`${userId}:${code.replaceAll('-', '')}`)
    .digest('hex')
}

/** Any string counts as a wrong code, not as a malformed request. */
export const factorCode = Joi.string().allow('')

export const keptRefreshToken = text(4096).optional()

export const unauthorized = [UnauthorizedError, AccountInactiveError, TooManyRequestsError]
export const codeRefusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaThrottledError]
