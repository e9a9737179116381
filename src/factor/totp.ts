import { randomBytes, timingSafeEqual } from 'node:crypto'
import speakeasy from 'speakeasy'

/** RFC 6238 section 5.2. */
const stepSeconds = 30

/** 160 random bits in base32 (RFC 4226 section 4, R6). speakeasy's own are drawn from 60 letters, unevenly. */
export function newTotpSecret(): string {
  return base32(randomBytes(20))
}

export function stepAt(instant: Date): number {
  return Math.floor(instant.getTime() / 1000 / stepSeconds)
}

/**
 * The step whose code this is, at most `window` steps from now on either side; null when it is none's. Every step is
 * computed and compared, so that time tells nothing. speakeasy computes one code per step and nothing else: its own check
 * takes '+72814' and '72814x' for '072814', and a secret that cannot be read for one that fits.
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

/** RFC 4226 section 5.3, with the step as counter. */
function codeAt(secret: string, step: number): string {
  return speakeasy.hotp({ secret, encoding: 'base32', counter: step, digits: 6 })
}

/** What authenticator apps read, from a QR code or a link: an `otpauth:` URI with its label percent-encoded. */
export function provisioningUri({ secret, issuer, account }: { secret: string; issuer: string; account: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const query = Object.entries({ secret, issuer, algorithm: 'SHA1', digits: '6', period: String(stepSeconds) })
  // Not URLSearchParams: several apps show its `+` for a blank.
  return `otpauth://totp/${label}?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 section 6, of a length that needs no padding: whole groups of five bytes. */
export function base32(bytes: Buffer): string {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{5}/g) ?? []).map((group) => alphabet[Number.parseInt(group, 2)]).join('')
}
