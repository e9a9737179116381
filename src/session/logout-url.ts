import type { AuthContext } from '../context'
import { isPassportProvider } from '../providers/passport-provider'

/**
 * Returns the URL where a browser also ends its session at the provider (OpenID Connect RP-Initiated Logout 1.0 section 2). Null: the session
 * was started without a provider, or the provider has no such URL. There is no `id_token_hint`, because we store no id_token, so the provider
 * may ask the person.
 *
 * @param provider the registration key of the session's row; null: none
 */
export function logoutUrlOf({ providers, settings }: AuthContext, provider: string | null): string | null {
  const client = provider === null ? undefined : providers.get(provider)
  if (!client || isPassportProvider(client) || typeof client.endSessionUrl !== 'string') return null
  const url = new URL(client.endSessionUrl)
  url.searchParams.set('client_id', client.clientId)
  if (settings.logoutRedirect !== null)
    url.searchParams.set('post_logout_redirect_uri', absolute(settings.logoutRedirect, settings.publicUrl))
  return url.href
}

/** Returns the absolute URL of a path of this site, because the provider needs one. */
function absolute(target: string, publicUrl: string): string {
  return target.startsWith('/') ? `${publicUrl}${target}` : target
}
