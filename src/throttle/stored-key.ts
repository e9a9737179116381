import { createHash } from 'node:crypto'

/** What the columns of `auth_counters` hold. */
const longest = 255
const marker = 'sha256:'

/**
 * The key as a shared store keeps it: a plain one as it is; a long one, or one whose characters a database or driver would
 * change or refuse (NUL, half a surrogate pair), as its digest. Two keys stay two keys.
 */
export function storedKey(key: string): string {
  const isPlain = key.length <= longest && /^[ -~]*$/.test(key) && !key.startsWith(marker)
  return isPlain ? key : marker + createHash('sha256').update(key, 'utf16le').digest('base64url')
}
