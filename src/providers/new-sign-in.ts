import { isPassportProvider, type Provider } from './passport-provider'
import type { OAuthTokens } from './provider-client'
import { CLOCK_SKEW_SECONDS } from './signed-token'

/** Returns true if this provider's response can show that the person signed in again. */
export function canVerifySignIn(client: Provider): boolean {
  if (isPassportProvider(client)) return false // a profile does not say when the person signed in
  return client.reauthenticates === true || (typeof client.authTimeOf === 'function' && client.scopes.includes('openid'))
}

/**
 * Returns true if these tokens show that the person signed in at or after `since`. `auth_time` decides. Without `auth_time`, the host's
 * option `reauthenticates` decides. Many providers ignore `prompt=login` (OpenID Connect Core section 3.1.2.1) and use an older session.
 * The provider's clock can be one minute behind ours (`CLOCK_SKEW_SECONDS`). So a sign-in within one minute before `since` also counts.
 * @param since seconds since 1970
 */
export function verifiesSignIn(client: Provider, tokens: OAuthTokens, since: number): boolean {
  if (isPassportProvider(client)) return false
  const authTime: unknown = client.authTimeOf?.(tokens) ?? null
  return typeof authTime === 'number' ? authTime >= since - CLOCK_SKEW_SECONDS : client.reauthenticates === true
}
