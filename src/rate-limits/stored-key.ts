import { createHash } from 'node:crypto'

/** The length of the key column of `auth_counters`. */
const longest = 255
const marker = 'sha256:'

/**
 * Returns the form of a key in a shared store. A short key of printable ASCII characters stays unchanged. For every other key, the function
 * returns a digest, because a database or driver can change or reject other characters (for example NUL). A key that looks like a digest
 * also becomes a digest, so different keys stay different.
 */
export function storedKey(key: string): string {
  const isPlain = key.length <= longest && /^[ -~]*$/.test(key) && !key.startsWith(marker)
  return isPlain ? key : marker + createHash('sha256').update(key, 'utf16le').digest('base64url')
}
