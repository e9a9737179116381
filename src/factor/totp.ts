import { randomBytes, timingSafeEqual } from 'node:crypto'
import speakeasy from 'speakeasy'

/** RFC 6238 section 5.2. */
const stepSeconds = 30

/** Returns 160 random bits in base32 (RFC 4226 section 4, R6). speakeasy's own secrets use 60 letters with unequal probability. */
export function newTotpSecret(): string {
  return base32(randomBytes(20))
}

export function stepAt(instant: Date): number {
  return Math.floor(instant.getTime() / 1000 / stepSeconds)
}

/**
 * Returns the step of a code, at most `window` steps before or after now, or null. Computes and compares every step, so that the time
 * reveals nothing. speakeasy only computes the code of a step: its own check accepts '+72814' and '72814x' for '072814', and accepts
 * secrets that it cannot decode.
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

/** Returns the code of a step: RFC 4226 section 5.3, with the step as counter. */
function codeAt(secret: string, step: number): string {
  return speakeasy.hotp({ secret, encoding: 'base32', counter: step, digits: 6 })
}

/** Returns the `otpauth:` URI for authenticator apps, for a QR code or a link. Its label is percent-encoded. */
export function provisioningUri({ secret, issuer, account }: { secret: string; issuer: string; account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const query = Object.entries({ secret, issuer, algorithm: 'SHA1', digits: '6', period: String(stepSeconds) })
  // Not URLSearchParams, because several apps show its `+` instead of a space.
  return `otpauth://totp/${label}?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Encodes as RFC 4648 section 6. The length must be a multiple of five bytes, so that no padding is needed. */
export function base32(bytes: Buffer): string {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{5}/g) ?? []).map((group) => alphabet[Number.parseInt(group, 2)]).join('')
}
