import { createHash, randomBytes } from 'node:crypto'

/** Returns a token without any information: 256 random bits in base64url. It is sent once and never stored. */
export function newOpaqueToken(): string {
  return randomBytes(32).toString('base64url')
}

/** What is stored instead. A search without salt would need to guess the bits. */
export function hashOpaqueToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** What is of another shape was never ours: no need to ask the database. */
export function isOpaqueToken(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}
