import type { AuthContext } from '../context'
import { OAuthAudienceUnverifiableError, OAuthTokenAudienceMismatchError } from '../errors'
import { normalizeProfile } from '../providers/normalize-profile'
import type { OAuthUser, ProviderClient } from '../providers/provider-client'
import { withProviderErrors } from './provider-errors'

/**
 * The profile behind an access token that a native app brought. Only after the provider said that the token was issued to
 * this application: otherwise any other application's token would speak for its owner here (RFC 6749 section 10.16).
 * @throws OAuthAudienceUnverifiableError before any call; OAuthError and what the client's audience check throws
 */
export async function fetchUserInHand(ctx: AuthContext, key: string, client: ProviderClient, accessToken: string): Promise<OAuthUser> {
  if (typeof client.verifyTokenAudience !== 'function') throw new OAuthAudienceUnverifiableError({ details: { provider: key } })
  const verdict: unknown = await withProviderErrors(ctx, key, async () => client.verifyTokenAudience?.(accessToken))
  // The contract's clients throw; one written without types may say no in its own way.
  if (verdict === false) throw new OAuthTokenAudienceMismatchError()
  const nothingElse = { tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {} }
  return withProviderErrors(ctx, key, async () => normalizeProfile(key, await client.fetchUser({ accessToken, ...nothingElse })))
}
