import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Returns a token without any information: 256 random bits in base64url. The token is sent once and never stored. */
export function newOpaqueToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Returns the hash that the store keeps instead of the token. The hash needs no salt, because nobody can guess 256 random bits. */
export function hashOpaqueToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** Returns true if the text has the form of our tokens. The caller rejects any other text without a query. */
export function isOpaqueToken(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}

/** Returns true if the texts are equal. Compares texts of the same length in constant time. Returns false if `given` is null or empty. */
export function constantTimeEqual(expected: string, given: string | null): boolean {
  if (given === null || given === '') return false
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const longestTyped = 256

/**
 * Returns a code as doorward compares it: without blanks, dashes and invisible marks, and with the digits 0 to 9. People copy codes in
 * groups, password managers add invisible marks, and keyboards and apps write the digits of their script. A text that is too long for a
 * code stays as it is, because its normalization could take long.
 */
export function readTypedCode(typed: string): string {
  if (typed.length > longestTyped) return typed
  return typed
    .normalize('NFKC')
    .replace(/[\s\p{Pd}\u2212\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/\p{Nd}/gu, digitOf)
}

/** Returns the value of a digit. In every script the digits stand next to each other, from zero to nine (Unicode 4.6, Decimal Digits). */
function digitOf(digit: string): string {
  const point = digit.codePointAt(0) ?? 0
  let below = 0
  while (/^\p{Nd}$/u.test(String.fromCodePoint(point - below - 1))) below++
  return String(below % 10)
}
