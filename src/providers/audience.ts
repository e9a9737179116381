import { OAuthTokenAudienceMismatchError } from '../core/errors'
import { isPlainObject } from './provider-request'

/**
 * Rejects an access token that was not issued to this application. The provider's claims decide. `azp` and `client_id` name the application
 * that got the token. If a token has one of these claims, the claim must name us. If a token has neither claim, its `aud` must name us.
 * `aud` is the last choice, because it can list every service that accepts the token. The function compares whole ids.
 *
 * @throws OAuthTokenAudienceMismatchError also when the claims name no application
 */
export function requireAudience(claims: unknown, accepted: readonly string[]): void {
  if (!isPlainObject(claims) || !isOurs(claims, accepted)) throw new OAuthTokenAudienceMismatchError()
}

function isOurs({ azp, client_id: clientId, aud }: Record<string, unknown>, accepted: readonly string[]): boolean {
  const isAccepted = (id: unknown) => typeof id === 'string' && id !== '' && accepted.includes(id)
  const parties = [azp, clientId].filter((party) => party !== undefined && party !== null)
  if (parties.length > 0) return parties.every(isAccepted)
  return Array.isArray(aud) ? aud.some(isAccepted) : isAccepted(aud)
}
