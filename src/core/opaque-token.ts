import { createHash, randomBytes } from 'node:crypto'

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
