import { isPassportProvider, type Provider } from './passport-provider'
import type { OAuthTokens } from './provider-client'
import { CLOCK_SKEW_SECONDS } from './signed-token'

/** True if this provider's response can show that the person signed in again. */
export function canProveSignIn(client: Provider): boolean {
  if (isPassportProvider(client)) return false // a profile does not say when the person signed in
  return client.reauthenticates === true || (typeof client.authTimeOf === 'function' && client.scopes.includes('openid'))
}

/**
 * True where these tokens prove that the person signed in since then. The provider's own word decides; without one, what the host says of the
 * provider: many ignore `prompt=login` (OpenID Connect Core section 3.1.2.1) and answer by an older session.
 * The provider's clock may be behind ours by as much as it may be in an id_token. So a sign-in within that minute before counts, too: the
 * person was at the provider just then.
 * @param since seconds since 1970
 */
export function provesSignIn(client: Provider, tokens: OAuthTokens, since: number): boolean {
  if (isPassportProvider(client)) return false
  const authTime: unknown = client.authTimeOf?.(tokens) ?? null
  return typeof authTime === 'number' ? authTime >= since - CLOCK_SKEW_SECONDS : client.reauthenticates === true
}
