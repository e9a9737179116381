import type { TokenProof } from './provider-client'
import { refused } from './signed-token'

/**
 * Rejects a profile of another person than the verified token's owner. If the verification named no owner, there is nothing to compare.
 *
 * @param subject the profile's `sub` as the provider spells it, a number as its digits
 * @throws OAuthTokenRejectedError
 */
export function refuseOtherSubject(proof: TokenProof | undefined, subject: string): void {
  const proven = proof?.claims?.['sub']
  if (proven === undefined || proven === null) return
  if (spelled(proven) !== subject) throw refused('the profile is of another subject than the token')
}

/** Returns the subject as text. A safe integer is accepted, because some providers quote it in one response and not in the other. */
function spelled(subject: unknown): string | null {
  if (Number.isSafeInteger(subject)) return String(subject)
  return typeof subject === 'string' && subject !== '' ? subject : null
}
