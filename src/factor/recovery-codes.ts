import { createHash, randomBytes } from 'node:crypto'
import { base32 } from './totp'

/** 125 bits: too many to guess, so a plain SHA-256 is enough to store. Shown in groups, since people write them down. */
const characters = 25
const groups = /.{5}/g

/** Fresh codes, as they are shown once. */
export function newRecoveryCodes(count: number): string[] {
  return Array.from({ length: count }, () => (base32(randomBytes(20)).slice(0, characters).match(groups) ?? []).join('-'))
}

/** Of what somebody typed, once blanks and dashes are gone; null for what cannot be a recovery code. */
export function readRecoveryCode(typed: string): string | null {
  const code = typed.toUpperCase()
  return code.length === characters && /^[A-Z2-7]+$/.test(code) ? code : null
}

/** Whether what somebody typed looks like a recovery code; every other text counts as a code of an app. */
export function isRecoveryCode(typed: string): boolean {
  return readRecoveryCode(withoutSpaces(typed)) !== null
}

/** Spaces and dashes are how codes are written down. */
export function withoutSpaces(typed: string): string {
  return typed.replace(/[\s-]/g, '')
}

/** Bound to the user: the same code in another's set has another hash. */
export function hashRecoveryCode(userId: string, code: string): string {
  return createHash('sha256')
    .update(`${userId}:${code.replaceAll('-', '')}`)
    .digest('hex')
}
