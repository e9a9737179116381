import { randomBytes } from 'node:crypto'
import type { PasswordHasher } from './password-types'

/**
 * Returns a function that returns the hash of a random password, with the hasher's current parameters. The login verifies this dummy hash
 * if the account has no hash. Then a login with an unknown address takes as long as a login with a wrong password. The function hashes once
 * and keeps the result. If hashing fails, the next call tries again.
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
