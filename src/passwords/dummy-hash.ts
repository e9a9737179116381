import { randomBytes } from 'node:crypto'
import type { PasswordHasher } from './password-hasher'

/**
 * A hash of a password nobody knows, with the hasher's current parameters, to be verified where there is no other: an
 * address nobody has then costs what a wrong password costs. Made at the first call and kept; a failed attempt is not.
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
