import type { AuthContext } from '../context'
import { OAuthAudienceUnverifiableError, OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, ValidationError } from '../core/errors'
import { normalizeProfile } from '../providers/normalize-profile'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import type { OAuthUser, TokenProof } from '../providers/provider-client'
import { isPlainObject } from '../providers/provider-request'
import { newLoginAttempt } from '../sessions/announce-failed-login'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { fetchUserOfIdToken, type IdTokenInHand } from './id-token-in-hand'
import { type LinkedIdentity, type LinkOptions, linkIdentity } from './link-identity'
import { type IdentityLoginOptions, logInWithIdentity } from './log-in-with-identity'
import { withProviderErrors } from './provider-errors'
import { findProvider } from './registered-provider'
import { tellingFailures } from './telling-failures'

/** A provider's token that a native app already has. */
export type TokenInHand = AccessTokenInHand | IdTokenInHand

/** A provider's access token. */
export interface AccessTokenInHand {
  /** The key of the provider in the option `providers`, for example `google`. */
  provider: string
  /** 1 to 8,192 visible ASCII characters. */
  accessToken: string
}

/** Visible ASCII, as in a header (RFC 6750 section 2.1). The maximum length is our choice. */
export const accessTokenPattern = /^[\x21-\x7e]{1,8192}$/

/**
 * Logs in by a token that an app already has. After the function has read the profile, it continues like the callback.
 * @throws OAuthProviderNotConfiguredError, ValidationError, what `fetchUserInHand` and `logInWithIdentity` throw
 */
export async function logInWithToken(
  ctx: AuthContext,
  given: TokenInHand,
  client: LoginClient,
  options: IdentityLoginOptions = {},
): Promise<AnyLoginResult> {
  const attempt = options.attempt ?? newLoginAttempt(null)
  return tellingFailures(ctx, given.provider, attempt, async () =>
    logInWithIdentity(ctx, await fetchUserInHand(ctx, given), client, { ...options, attempt }),
  )
}

/**
 * Links the identity of a token.
 *
 * @throws OAuthProviderNotConfiguredError, ValidationError, what `fetchUserInHand` and `linkIdentity` throw
 */
export async function linkWithToken(
  ctx: AuthContext,
  userId: string,
  given: TokenInHand,
  options: LinkOptions = {},
): Promise<LinkedIdentity> {
  return linkIdentity(ctx, userId, await fetchUserInHand(ctx, given), options)
}

function fetchUserInHand(ctx: AuthContext, given: TokenInHand): Promise<OAuthUser> {
  return 'idToken' in given ? fetchUserOfIdToken(ctx, given) : fetchUserOfAccessToken(ctx, given)
}

/**
 * Returns the profile of an access token, after the provider confirmed that the token was issued to this application. Without this check,
 * another application could log in here as one of its users, with that user's token (RFC 6749 section 10.16). Reads no account.
 * @throws OAuthAudienceUnverifiableError before any request to the provider; OAuthError, and every error of the client's audience check
 * @throws OAuthTokenRejectedError when the profile belongs to another person than the token
 */
async function fetchUserOfAccessToken(ctx: AuthContext, { provider, accessToken }: AccessTokenInHand): Promise<OAuthUser> {
  const { key, client } = findProvider(ctx, provider)
  requireAccessToken(accessToken)
  const proof = await verifyAudience(ctx, key, client, accessToken)
  const tokens = { accessToken, tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {}, proof }
  const profile = await withProviderErrors(ctx, [key, 'token'], async () => normalizeProfile(key, await client.fetchUser(tokens)))
  const subject = Number.isSafeInteger(proof.subject) ? String(proof.subject) : proof.subject // the profile's subject is a string
  if (subject !== undefined && subject !== null && subject !== profile.subject) throw new OAuthTokenRejectedError()
  return profile
}

/** Checks the input of a call by the service. A route has already checked its body. */
function requireAccessToken(accessToken: unknown): void {
  if (typeof accessToken === 'string' && accessTokenPattern.test(accessToken)) return
  throw new ValidationError({ details: { errors: [{ path: 'access_token', rule: 'string.pattern.base' }] } })
}

async function verifyAudience(ctx: AuthContext, key: string, client: Provider, accessToken: string): Promise<TokenProof> {
  if (isPassportProvider(client) || client.clientId === '' || typeof client.verifyTokenAudience !== 'function') {
    throw new OAuthAudienceUnverifiableError({ details: { provider: key } })
  }
  const verdict: unknown = await withProviderErrors(ctx, [key, 'token'], async () => client.verifyTokenAudience?.(accessToken))
  // Our clients throw. A host's client in plain JavaScript can return false instead.
  if (verdict === false) throw new OAuthTokenAudienceMismatchError()
  return isPlainObject(verdict) ? verdict : {}
}
