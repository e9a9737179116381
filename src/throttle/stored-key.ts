import { createHash } from 'node:crypto'

/** The length of the key column of `auth_counters`. */
const longest = 255
const marker = 'sha256:'

/**
 * Returns the key as a shared store keeps it. A key becomes a digest if it is too long, or has characters that a database or driver would
 * change or reject (NUL, half a surrogate pair). Different keys stay different.
 */
export function storedKey(key: string): string {
  const isPlain = key.length <= longest && /^[ -~]*$/.test(key) && !key.startsWith(marker)
  return isPlain ? key : marker + createHash('sha256').update(key, 'utf16le').digest('base64url')
}
