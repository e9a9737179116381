import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** 256 random bits in base64url, without any information. Sent once and never stored. */
export function newOpaqueToken(): string {
  return randomBytes(32).toString('base64url')
}

/** The store keeps this instead of the token. Needs no salt, because nobody can guess 256 random bits. */
export function hashOpaqueToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** The caller rejects any other text without a query. */
export function isOpaqueToken(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}

/** Constant time for texts of the same length. False if `given` is null or empty. */
export function constantTimeEqual(expected: string, given: string | null): boolean {
  if (given === null || given === '') return false
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const longestTyped = 256

/** Codes get copied in groups, with invisible marks, or in other scripts. Normalizing a text that is too long could take long. */
export function readTypedCode(typed: string): string {
  if (typed.length > longestTyped) return typed
  return typed
    .normalize('NFKC')
    .replace(/[\s\p{Pd}\u2212\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/\p{Nd}/gu, digitOf)
}

/** In every script the digits stand next to each other, from zero to nine (Unicode 4.6, Decimal Digits). */
function digitOf(digit: string): string {
  const point = digit.codePointAt(0) ?? 0
  let below = 0
  while (/^\p{Nd}$/u.test(String.fromCodePoint(point - below - 1))) below++
  return String(below % 10)
}
