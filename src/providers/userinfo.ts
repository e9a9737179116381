import { AppError, OAuthProviderUnavailableError } from '../core/errors'
import { type KeySet, verifyByKeySet } from './key-set'
import { getClaimsWithBearer, type ProviderConnection } from './oauth2-request'
import type { OAuthTokens } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { readHeader, reasonOf, SIGNATURE_ALGORITHMS, signedTokenRefusal } from './signed-token'

type Claims = Record<string, unknown>

export interface UserinfoRules {
  clientId: string
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  keySet: KeySet | null
  now: Date
}

/**
 * Reads userinfo (OpenID Connect Core section 5.3). Userinfo is a JSON object. If the client is registered for a JWT, userinfo is a JWT.
 *
 * @throws OAuthError when the provider refuses or its response is unusable
 * @throws OAuthProviderUnavailableError if an app sent the token and no readable response came; the app can try again
 */
export async function readUserinfo(
  connection: ProviderConnection,
  url: string,
  tokens: OAuthTokens,
  rules: UserinfoRules,
): Promise<Claims> {
  const content = await getClaimsWithBearer(connection, url, tokens)
  if (typeof content !== 'string') return content
  try {
    return await verifyUserinfo(content, rules, { isOwnExchange: !tokens.proof })
  } catch (error) {
    if (!(error instanceof AppError) || (tokens.proof && error instanceof OAuthProviderUnavailableError)) throw error
    throw unusableIdentity(connection.providerName, `userinfo refused: ${reasonOf(error)}`)
  }
}

/**
 * Verifies userinfo that is a JWT (section 5.3.2). If `iss`, `aud` or `exp` is present, it must be right. `exp` may be missing, because the
 * JWT came directly from the provider.
 */
async function verifyUserinfo(jwt: string, rules: UserinfoRules, { isOwnExchange }: { isOwnExchange: boolean }): Promise<Claims> {
  const header = readHeader(jwt, SIGNATURE_ALGORITHMS)
  if (!rules.keySet) throw signedTokenRefusal('it is a signed JWT, and no jwksUri is set to check it')
  const claims = await verifyByKeySet(rules.keySet, jwt, header, { isOwnExchange })
  const { iss, aud, exp } = claims
  if (iss !== undefined && !(typeof iss === 'string' && rules.acceptsIssuer(iss, claims)))
    throw signedTokenRefusal('iss is not the issuer: check issuer')
  if (aud !== undefined && ![aud].flat().includes(rules.clientId)) throw signedTokenRefusal('aud does not name this client: check clientId')
  if (exp !== undefined && !(typeof exp === 'number' && exp > rules.now.getTime() / 1000))
    throw signedTokenRefusal('exp is past: check the clocks')
  return claims
}
