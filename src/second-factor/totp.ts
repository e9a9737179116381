import { randomBytes, timingSafeEqual } from 'node:crypto'
import speakeasy from 'speakeasy'

/** The time step of RFC 6238 section 5.2. */
const stepSeconds = 30

/**
 * Returns 160 random bits in base32 (RFC 4226 section 4, R6). The function does not use the secrets of speakeasy, because their characters
 * are not equally probable.
 */
export function newTotpSecret(): string {
  return base32(randomBytes(20))
}

export function stepAt(instant: Date): number {
  return Math.floor(instant.getTime() / 1000 / stepSeconds)
}

/**
 * Returns the step of a code, at most `window` steps before or after now. Returns null if no step matches. The function computes and
 * compares every step, so that the time reveals nothing. We use speakeasy only to compute the code of a step. The check of speakeasy would
 * accept '+72814' and '72814x' for '072814'. The check would also accept secrets that speakeasy cannot decode.
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

/** Returns the code of a step. The step is the counter of RFC 4226 section 5.3. */
function codeAt(secret: string, step: number): string {
  return speakeasy.hotp({ secret, encoding: 'base32', counter: step, digits: 6 })
}

/** Returns the `otpauth:` URI for authenticator apps. The URI can be a QR code or a link. Its label is percent-encoded. */
export function provisioningUri({ secret, issuer, account }: { secret: string; issuer: string; account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const query = Object.entries({ secret, issuer, algorithm: 'SHA1', digits: '6', period: String(stepSeconds) })
  // URLSearchParams would write spaces as `+`, and several apps show the `+`.
  return `otpauth://totp/${label}?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Encodes bytes as RFC 4648 section 6. The length must be a multiple of five bytes, so that the result needs no padding. */
export function base32(bytes: Buffer): string {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{5}/g) ?? []).map((group) => alphabet[Number.parseInt(group, 2)]).join('')
}
