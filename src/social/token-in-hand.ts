import type { AuthContext } from '../context'
import { OAuthAudienceUnverifiableError, OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, ValidationError } from '../errors'
import { normalizeProfile } from '../providers/normalize-profile'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import type { OAuthUser, TokenProof } from '../providers/provider-client'
import { isPlainObject } from '../providers/provider-request'
import { newLoginAttempt } from '../session/announce-failed-login'
import type { LoginChallenge, OpenedSession, OpenSession } from '../session/finish-login'
import { fetchUserOfIdToken, type IdTokenInHand } from './id-token-in-hand'
import { type LinkedIdentity, type LinkOptions, linkIdentity } from './link-identity'
import { type IdentityLoginOptions, logInWithIdentity } from './log-in-with-identity'
import { withProviderErrors } from './provider-errors'
import { findProvider } from './registered-provider'
import { tellingFailures } from './telling-failures'

/** What a native app brought of a provider. */
export type TokenInHand = AccessTokenInHand | IdTokenInHand

/** A provider's access token. */
export interface AccessTokenInHand {
  /** The registration key. */
  provider: string
  /** 1 to 8,192 visible ASCII characters. */
  accessToken: string
}

/** Visible ASCII, as a header may carry it (RFC 6750 section 2.1); the bound is ours. */
export const accessTokenPattern = /^[\x21-\x7e]{1,8192}$/

/**
 * The callback's login for an app that holds a token already: from the profile on it is the same.
 * @throws OAuthProviderNotConfiguredError, ValidationError, what `fetchUserInHand` and `logInWithIdentity` throw
 */
export async function logInWithToken<Session extends OpenedSession>(
  ctx: AuthContext,
  given: TokenInHand,
  open: OpenSession<Session>,
  options: IdentityLoginOptions = {},
): Promise<Session | LoginChallenge> {
  const attempt = options.attempt ?? newLoginAttempt(null)
  return tellingFailures(ctx, given.provider, attempt, async () =>
    logInWithIdentity(ctx, await fetchUserInHand(ctx, given), open, { ...options, attempt }),
  )
}

/** @throws OAuthProviderNotConfiguredError, ValidationError, what `fetchUserInHand` and `linkIdentity` throw */
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
 * The profile behind an access token. Only after the provider said that the token was issued to this application: otherwise
 * any other application's token would speak for its owner here (RFC 6749 section 10.16). No account is looked at.
 * @throws OAuthAudienceUnverifiableError before any call; OAuthError and what the client's audience check throws;
 *   OAuthTokenRejectedError when the profile is of somebody else than the token
 */
async function fetchUserOfAccessToken(ctx: AuthContext, { provider, accessToken }: AccessTokenInHand): Promise<OAuthUser> {
  const { key, client } = findProvider(ctx, provider)
  requireAccessToken(accessToken)
  const proof = await proveAudience(ctx, key, client, accessToken)
  const tokens = { accessToken, tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {}, proof }
  const profile = await withProviderErrors(ctx, [key, 'token'], async () => normalizeProfile(key, await client.fetchUser(tokens)))
  const subject = Number.isSafeInteger(proof.subject) ? String(proof.subject) : proof.subject // as a profile's is written
  if (subject !== undefined && subject !== null && subject !== profile.subject) throw new OAuthTokenRejectedError()
  return profile
}

/** For callers of the service; a route's body was held to the same. */
function requireAccessToken(accessToken: unknown): void {
  if (typeof accessToken === 'string' && accessTokenPattern.test(accessToken)) return
  throw new ValidationError({ details: { errors: [{ path: 'access_token', rule: 'string.pattern.base' }] } })
}

async function proveAudience(ctx: AuthContext, key: string, client: Provider, accessToken: string): Promise<TokenProof> {
  if (isPassportProvider(client) || client.clientId === '' || typeof client.verifyTokenAudience !== 'function') {
    throw new OAuthAudienceUnverifiableError({ details: { provider: key } })
  }
  const verdict: unknown = await withProviderErrors(ctx, [key, 'token'], async () => client.verifyTokenAudience?.(accessToken))
  // Our clients throw; one written without types may say no in its own way.
  if (verdict === false) throw new OAuthTokenAudienceMismatchError()
  return isPlainObject(verdict) ? verdict : {}
}
