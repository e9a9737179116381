import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * A TOTP secret as it is stored: AES-256-GCM under `mfaSecretKey`, bound to its user, so that one user's row is nothing in
 * another's. The first key encrypts, every key decrypts: a new one is put in front. Without a key it is stored as it is.
 */
export function sealSecret(keys: readonly Buffer[], userId: string, secret: string): string {
  const key = keys[0]
  if (!key) return secret
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(associatedData(userId))
  const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return [version, ...[nonce, sealed, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join('.')
}

/**
 * Null for what no key opens, what is another user's, and what was changed. A secret stored before there was a key is read as
 * it is: whoever can write the table can write a factor of their own anyway.
 */
export function openSecret(keys: readonly Buffer[], userId: string, stored: string): string | null {
  const [mark, ...parts] = stored.split('.')
  if (mark !== version) return stored
  const [nonce, sealed, tag] = parts.map((part) => Buffer.from(part, 'base64url'))
  if (parts.length !== 3 || nonce?.length !== 12 || !sealed || tag?.length !== 16) return null
  for (const key of keys) {
    const secret = open(key, userId, { nonce, sealed, tag })
    if (secret !== null) return secret
  }
  return null
}

/** No base32 text holds a dot, so a plain secret is never taken for a sealed one. */
const version = 'v1'

function open(key: Buffer, userId: string, { nonce, sealed, tag }: { nonce: Buffer; sealed: Buffer; tag: Buffer }): string | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce)
    decipher.setAAD(associatedData(userId))
    decipher.setAuthTag(tag)
    return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8')
  } catch {
    return null // another key's, or not as it was written
  }
}

function associatedData(userId: string): Buffer {
  return Buffer.from(`doorward/totp-secret/${userId}`, 'utf8')
}

/** `settings.mfaSecretKey`, already checked: 32 bytes each. */
export function readSecretKeys(setting: string | null): readonly Buffer[] {
  return setting === null ? [] : setting.split(',').map((key) => Buffer.from(key.trim(), 'base64'))
}
