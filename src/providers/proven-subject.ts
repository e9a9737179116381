import type { TokenProof } from './provider-client'
import { refused } from './signed-token'

/**
 * The person a token in hand was proven to stand for is the one the profile describes; where the provider named nobody
 * with its proof, there is nothing to compare.
 *
 * @param subject the profile's `sub` as the provider spells it, a number as its digits
 * @throws OAuthTokenRejectedError
 */
export function refuseOtherSubject(proof: TokenProof | undefined, subject: string): void {
  const proven = proof?.claims?.['sub']
  if (proven === undefined || proven === null) return
  if (spelled(proven) !== subject) throw refused('the profile is of another subject than the token')
}

/** A number where it is exact: some providers quote it in one answer and not in the other. */
function spelled(subject: unknown): string | null {
  if (Number.isSafeInteger(subject)) return String(subject)
  return typeof subject === 'string' && subject !== '' ? subject : null
}
