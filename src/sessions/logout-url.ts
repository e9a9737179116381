import type { AuthContext } from '../context'
import { isPassportProvider } from '../providers/passport-provider'

/**
 * Returns the URL where a browser also ends its session at the provider (OpenID Connect RP-Initiated Logout 1.0 section 2). Null: the
 * session was started without a provider, or the provider has no such URL. The URL has no `id_token_hint`, because doorward stores no
 * id_token. So the provider can ask the person to confirm the logout.
 *
 * @param provider the registration key in the session's row; null: the session has no provider
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

/** Returns the absolute URL of a path of this site, because the provider needs an absolute URL. */
function absolute(target: string, publicUrl: string): string {
  return target.startsWith('/') ? `${publicUrl}${target}` : target
}
