import { isSealed, openText, readSealingKeys, sealText } from '../sealing'

/**
 * Returns a TOTP secret in its stored form: encrypted with `mfaSecretKey`, and bound to its user, so that it is useless in another user's
 * row. The first key encrypts, every key decrypts; put a new key first. Without a key the secret is stored unencrypted.
 */
export function sealSecret(keys: readonly Buffer[], userId: string, secret: string): string {
  return keys.length === 0 ? secret : sealText(keys, purposeOf(userId), secret)
}

/**
 * Returns null for a secret that no key opens, that belongs to another user, or that was changed. A secret without encryption is returned
 * as it is, because an attacker who can write the table can add a factor of their own anyway. Base32 has no dot, so it is never mistaken
 * for an encrypted secret.
 */
export function openSecret(keys: readonly Buffer[], userId: string, stored: string): string | null {
  return isSealed(stored) ? openText(keys, purposeOf(userId), stored) : stored
}

function purposeOf(userId: string): string {
  return `doorward/totp-secret/${userId}`
}

/** Returns the keys of `settings.mfaSecretKey`, which is already checked: 32 bytes each. */
export function readSecretKeys(setting: string | null): readonly Buffer[] {
  return setting === null ? [] : readSealingKeys(setting)
}
