import { createHash } from 'node:crypto'

/** The length of the key column of `auth_counters`. */
const longest = 255
const marker = 'sha256:'

/**
 * Returns the form of a key in a shared store. If a key is too long, the function returns its digest. The function also returns the digest
 * if the key has characters that a database or driver would change or reject, such as NUL or half a surrogate pair. Different keys stay
 * different.
 */
export function storedKey(key: string): string {
  const isPlain = key.length <= longest && /^[ -~]*$/.test(key) && !key.startsWith(marker)
  return isPlain ? key : marker + createHash('sha256').update(key, 'utf16le').digest('base64url')
}
