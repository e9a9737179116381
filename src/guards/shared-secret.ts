import { createHash, timingSafeEqual } from 'node:crypto'
import { isPlaceholderSecret } from '../config/placeholder-secret'
import { ConfigurationError } from '../errors'

/** @throws ConfigurationError naming the option, never its value */
export function checkSecret(option: string, secret: unknown): string {
  if (typeof secret === 'string' && Buffer.byteLength(secret, 'utf8') >= 32 && !isPlaceholderSecret(secret)) return secret
  throw new ConfigurationError(
    `${option} must be a random secret of at least 32 bytes and no placeholder; \`openssl rand -base64 48\` makes one.`,
  )
}

/** In a time that says nothing about either: digests have one length, which timingSafeEqual wants. */
export function isSameText(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other))
}

export function digestOf(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest()
}
