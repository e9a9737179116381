import type { TokenProof } from './provider-client'
import { signedTokenRefusal } from './signed-token'

/**
 * Rejects a profile if its subject differs from the subject of the verified token. If the verification found no subject, the check does
 * nothing.
 *
 * @param subject the profile's `sub` as text, as the provider spells it
 * @throws OAuthTokenRejectedError
 */
export function refuseOtherSubject(proof: TokenProof | undefined, subject: string): void {
  const proven = proof?.claims?.['sub']
  if (proven === undefined || proven === null) return
  if (spelled(proven) !== subject) throw signedTokenRefusal('the profile is of another subject than the token')
}

/**
 * Returns the subject as text. Also accepts a safe integer, because some providers send a number in one response and a string in another.
 */
function spelled(subject: unknown): string | null {
  if (Number.isSafeInteger(subject)) return String(subject)
  return typeof subject === 'string' && subject !== '' ? subject : null
}
