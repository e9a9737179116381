import { createHash } from 'node:crypto'

/** Returns the S256 challenge of a verifier (RFC 7636 section 4.2). */
export function codeChallengeOf(codeVerifier: string): string {
  return createHash('sha256').update(codeVerifier).digest('base64url')
}

/** Returns true for a valid verifier (RFC 7636 section 4.1). */
export function isCodeVerifier(text: string): boolean {
  return /^[\w.~-]{43,128}$/.test(text)
}

/** Returns true for a SHA-256 in base64url. */
export function isCodeChallenge(text: string): boolean {
  return /^[\w-]{43}$/.test(text)
}
