import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { ConfigurationError } from './errors'
import { withOwnMessage } from './logger'

/** 32 bytes each, with more than four different byte values. */
export function areSealingKeys(keys: string): boolean {
  return keys.split(',').every((key) => /^[A-Za-z0-9+/]{43}=?$/.test(key.trim()) && new Set(Buffer.from(key, 'base64')).size > 4)
}

export function readSealingKeys(keys: string): readonly Buffer[] {
  return keys.split(',').map((key) => Buffer.from(key.trim(), 'base64'))
}

const version = 'v1'

export function isSealed(text: string): boolean {
  return text.startsWith(`${version}.`)
}

/** AES-256-GCM with the first key. @param purpose often with the owner's id; only the same purpose can decrypt the text */
export function sealText(keys: readonly Buffer[], purpose: string, text: string): string {
  const [key] = keys
  if (!key) throw new RangeError('sealing: no key is set, so a text cannot be encrypted.')
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(purpose, 'utf8'))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return [version, ...[nonce, sealed, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join('.')
}

/** Null: no key decrypts the text, the purpose differs, or the text was changed. */
export function openText(keys: readonly Buffer[], purpose: string, text: string): string | null {
  const [mark, ...parts] = text.split('.')
  const [nonce, sealed, tag] = parts.map((part) => Buffer.from(part, 'base64url'))
  if (mark !== version || parts.length !== 3 || nonce?.length !== 12 || !sealed || tag?.length !== 16) return null
  for (const key of keys) {
    const opened = openWith(key, purpose, { nonce, sealed, tag })
    if (opened !== null) return opened
  }
  return null
}

function openWith(key: Buffer, purpose: string, { nonce, sealed, tag }: { nonce: Buffer; sealed: Buffer; tag: Buffer }): string | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce)
    decipher.setAAD(Buffer.from(purpose, 'utf8'))
    decipher.setAuthTag(tag)
    return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8')
  } catch {
    return null // another key, or a changed text
  }
}

/** Encrypts texts that the app must read again. `sealer()` creates it. */
export interface Sealer {
  /** Encrypts the text with a new nonce. Returns `v1.nonce.sealed.tag`, which contains only letters, digits, `-`, `_` and `.`. */
  seal(text: string): string
  /** @throws Error if no key decrypts the text, or if the text was changed */
  open(text: string): string
}

/**
 * Returns a sealer for your own secrets, for example the tokens that `onProviderTokens` receives (AES-256-GCM).
 * @param key 32 random bytes in base64, or several keys separated by commas: the first key encrypts, and all keys decrypt
 * @throws ConfigurationError for any other key
 */
export function sealer(key: string): Sealer {
  if (typeof key !== 'string' || !areSealingKeys(key))
    throw new ConfigurationError(
      'sealer: key must be 32 random bytes in base64; several keys, separated by commas: the first key encrypts, all keys decrypt.',
    )
  const keys = readSealingKeys(key)
  const purpose = 'doorward/sealer'
  return Object.freeze({
    seal: (text: string) => sealText(keys, purpose, text),
    open(sealed: string) {
      const text = typeof sealed === 'string' ? openText(keys, purpose, sealed) : null
      if (text === null) throw withOwnMessage(new Error('sealer: no key can decrypt this text, or the text was changed.'))
      return text
    },
  })
}
