import { createHash, randomBytes } from 'node:crypto'
import { readTypedCode } from '../core/typed-code'
import { base32 } from './totp'

/**
 * The length of a recovery code in characters of base32, without dashes. A code has 125 bits. Nobody can guess that many bits, so a plain
 * SHA-256 is enough to store a code. Codes are shown in groups, because people write codes down.
 */
const characters = 25
const groups = /.{5}/g

/** Returns new codes in groups. The person sees the codes only once. */
export function newRecoveryCodes(count: number): string[] {
  return Array.from({ length: count }, () => (base32(randomBytes(20)).slice(0, characters).match(groups) ?? []).join('-'))
}

/** Reads a code that `readTypedCode` returned. Returns null if the text cannot be a recovery code. */
export function readRecoveryCode(typed: string): string | null {
  const code = typed.toUpperCase()
  return code.length === characters && /^[A-Z2-7]+$/.test(code) ? code : null
}

/** Returns true if a text looks like a recovery code. Any other text counts as a code of an authenticator app. */
export function isRecoveryCode(typed: string): boolean {
  return readRecoveryCode(readTypedCode(typed)) !== null
}

/** Returns the hash of a code. The hash depends on the user, so equal codes of two users have different hashes. */
export function hashRecoveryCode(userId: string, code: string): string {
  return createHash('sha256')
    .update(`${userId}:${code.replaceAll('-', '')}`)
    .digest('hex')
}
