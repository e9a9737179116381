import { createHash, timingSafeEqual } from 'node:crypto'
import { isPlaceholderSecret } from '../core/config/placeholder-secret'
import { ConfigurationError } from '../core/errors'

/**
 * Returns the secret if it is long and random enough.
 * @throws ConfigurationError with the name of the option, never with its value
 */
export function checkSecret(option: string, secret: unknown): string {
  if (typeof secret === 'string' && Buffer.byteLength(secret, 'utf8') >= 32 && !isPlaceholderSecret(secret)) return secret
  throw new ConfigurationError(
    `${option} must be a random secret of at least 32 bytes and no placeholder; \`openssl rand -base64 48\` makes one.`,
  )
}

/**
 * Checks one secret, or a list of different secrets.
 * @throws ConfigurationError with the position in the list
 */
export function checkSecrets(option: string, secrets: unknown): readonly string[] {
  if (!Array.isArray(secrets)) return [checkSecret(option, secrets)]
  const checked = Array.from(secrets, (secret: unknown, place) => checkSecret(`${option} ${place + 1}`, secret))
  if (checked.length > 0 && new Set(checked).size === checked.length) return checked
  throw new ConfigurationError(`${option} must be one secret, or a list of at least one, each different.`)
}

/** Compares two texts in constant time. The function compares digests, because timingSafeEqual needs inputs of equal length. */
export function isSameText(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other))
}

export function digestOf(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest()
}
