import { createHash } from 'node:crypto'

/** The length of the key column of `auth_counters`. */
const longest = 255
const marker = 'sha256:'

/**
 * Returns the form of a key in a shared store. If a key is too long, the function returns its digest. Some characters would be changed or
 * rejected by a database or driver, for example NUL or half a surrogate pair. If a key has such a character, the function also returns the
 * digest. Different keys stay different.
 */
export function storedKey(key: string): string {
  const isPlain = key.length <= longest && /^[ -~]*$/.test(key) && !key.startsWith(marker)
  return isPlain ? key : marker + createHash('sha256').update(key, 'utf16le').digest('base64url')
}
