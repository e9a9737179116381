import { createHash, randomBytes } from 'node:crypto'
import { base32 } from './totp'

/** 125 bits cannot be guessed, so a plain SHA-256 is enough to store a code. Codes are shown in groups, because people write them down. */
const characters = 25
const groups = /.{5}/g

/** Returns new codes, in the form in which they are shown once. */
export function newRecoveryCodes(count: number): string[] {
  return Array.from({ length: count }, () => (base32(randomBytes(20)).slice(0, characters).match(groups) ?? []).join('-'))
}

/** Reads a typed code without its spaces and dashes. Returns null if it cannot be a recovery code. */
export function readRecoveryCode(typed: string): string | null {
  const code = typed.toUpperCase()
  return code.length === characters && /^[A-Z2-7]+$/.test(code) ? code : null
}

/** True if a typed text looks like a recovery code. Any other text counts as a code of an app. */
export function isRecoveryCode(typed: string): boolean {
  return readRecoveryCode(withoutSpaces(typed)) !== null
}

/** Removes spaces and dashes, with which people write codes down. */
export function withoutSpaces(typed: string): string {
  return typed.replace(/[\s-]/g, '')
}

/** Returns the hash of a code. It depends on the user, so the same code of another user has another hash. */
export function hashRecoveryCode(userId: string, code: string): string {
  return createHash('sha256')
    .update(`${userId}:${code.replaceAll('-', '')}`)
    .digest('hex')
}
