import { randomBytes } from 'node:crypto'
import type { PasswordHasher } from './password-hasher'

/**
 * Returns a hash of an unknown password, with the hasher's current parameters. It is verified if there is no other hash. Then an unknown
 * address takes as long as a wrong password. The hash is made at the first call and kept. A failed attempt is not kept.
 */
export function createDummyHash(hasher: PasswordHasher): () => Promise<string> {
  let made: Promise<string> | undefined
  return () => {
    if (made) return made
    const attempt = hasher.hash(randomBytes(32).toString('base64url'))
    made = attempt
    attempt.catch(() => {
      made = undefined
    })
    return attempt
  }
}
