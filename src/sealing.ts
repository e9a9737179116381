import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** 32 bytes each, and not of one letter only. */
export function areSealingKeys(keys: string): boolean {
  return keys.split(',').every((key) => /^[A-Za-z0-9+/]{43}=?$/.test(key.trim()) && new Set(Buffer.from(key, 'base64')).size > 4)
}

/** What `areSealingKeys` let through. */
export function readSealingKeys(keys: string): readonly Buffer[] {
  return keys.split(',').map((key) => Buffer.from(key.trim(), 'base64'))
}

const version = 'v1'

/** True for output of `sealText`, under any key. */
export function isSealed(text: string): boolean {
  return text.startsWith(`${version}.`)
}

/**
 * AES-256-GCM under the first key.
 * @param purpose what the text is for, and whose: under another purpose nothing opens it
 */
export function sealText(keys: readonly Buffer[], purpose: string, text: string): string {
  const [key] = keys
  if (!key) throw new RangeError('There is no key to seal a text with.')
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(purpose, 'utf8'))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return [version, ...[nonce, sealed, cipher.getAuthTag()].map((part) => part.toString('base64url'))].join('.')
}

/** Returns null for what no key opens, what is of another purpose, and what was changed. */
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
    return null // another key's, or not as it was written
  }
}
