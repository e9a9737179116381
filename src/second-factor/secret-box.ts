import { isSealed, openText, readSealingKeys, sealText } from '../core/encryption'

/** Useless in another user's row. The first key encrypts, every key decrypts: put a new key first. Without a key, unencrypted. */
export function sealSecret(keys: readonly Buffer[], userId: string, secret: string): string {
  return keys.length === 0 ? secret : sealText(keys, purposeOf(userId), secret)
}

/**
 * Null if no key decrypts the secret, or if it was changed or belongs to another user. An unencrypted secret stays as it is: an attacker
 * who can write to the table can also add a factor. Base32 has no dot, so it never looks like an encrypted one.
 */
export function openSecret(keys: readonly Buffer[], userId: string, stored: string): string | null {
  return isSealed(stored) ? openText(keys, purposeOf(userId), stored) : stored
}

/** A secret that no key decrypts differs from every secret. */
export function isSameSecret(keys: readonly Buffer[], userId: string, one: string | null, other: string | null): boolean {
  if (one === null || other === null) return one === other
  const opened = openSecret(keys, userId, one)
  return opened !== null && opened === openSecret(keys, userId, other)
}

/** An encrypted secret stays as it is, also under an older key. */
export function sealPlain(keys: readonly Buffer[], userId: string, stored: string): string {
  return isSealed(stored) ? stored : sealSecret(keys, userId, stored)
}

function purposeOf(userId: string): string {
  return `doorward/totp-secret/${userId}`
}

/** 32 bytes each. The setting is already checked. */
export function readSecretKeys(setting: string | null): readonly Buffer[] {
  return setting === null ? [] : readSealingKeys(setting)
}
