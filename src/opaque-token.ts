import { createHash, randomBytes } from 'node:crypto'

/** Returns a token without any information: 256 random bits in base64url. It is sent once and never stored. */
export function newOpaqueToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Returns the hash that is stored instead of the token. It needs no salt, because 256 random bits cannot be guessed. */
export function hashOpaqueToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** Returns true if the text has the shape of our tokens. Any other text needs no query. */
export function isOpaqueToken(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}
