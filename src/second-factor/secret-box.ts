import { isSealed, openText, readSealingKeys, sealText } from '../core/encryption'

/**
 * Returns a TOTP secret in its stored form. The secret is encrypted with `mfaSecretKey` and bound to its user. In another user's row the
 * secret is useless. The first key encrypts, and every key decrypts. Put a new key first. Without a key, the secret is stored unencrypted.
 */
export function sealSecret(keys: readonly Buffer[], userId: string, secret: string): string {
  return keys.length === 0 ? secret : sealText(keys, purposeOf(userId), secret)
}

/**
 * Returns the decrypted secret. Returns null if no key decrypts the secret, or if the secret was changed or belongs to another user. An
 * unencrypted secret is returned unchanged. This adds no risk, because an attacker who can write to the table can also add a factor.
 * Base32 has no dot, so an unencrypted secret never looks like an encrypted secret.
 */
export function openSecret(keys: readonly Buffer[], userId: string, stored: string): string | null {
  return isSealed(stored) ? openText(keys, purposeOf(userId), stored) : stored
}

/**
 * Returns true if two stored secrets of a user decrypt to the same secret, or if both are null. A secret that no key decrypts differs from
 * every secret.
 */
export function isSameSecret(keys: readonly Buffer[], userId: string, one: string | null, other: string | null): boolean {
  if (one === null || other === null) return one === other
  const opened = openSecret(keys, userId, one)
  return opened !== null && opened === openSecret(keys, userId, other)
}

/** Returns a stored secret encrypted. A secret that is already encrypted stays as it is, also under an older key. */
export function sealPlain(keys: readonly Buffer[], userId: string, stored: string): string {
  return isSealed(stored) ? stored : sealSecret(keys, userId, stored)
}

function purposeOf(userId: string): string {
  return `doorward/totp-secret/${userId}`
}

/** Returns the keys of `settings.mfaSecretKey`, 32 bytes each. The setting is already checked. */
export function readSecretKeys(setting: string | null): readonly Buffer[] {
  return setting === null ? [] : readSealingKeys(setting)
}
