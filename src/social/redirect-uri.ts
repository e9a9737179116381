import type { AuthContext } from '../context'
import { isPassportProvider, type Provider } from '../providers/passport-provider'

/** Returns the redirect URI exactly as the host registered it at the provider. The URI never depends on the Host header. */
export function redirectUriOf({ settings, prefix }: Pick<AuthContext, 'settings' | 'prefix'>, key: string, client: Provider): string {
  const own = isPassportProvider(client) ? undefined : client.redirectUri
  return own ?? `${settings.publicUrl}${prefix}/oauth/${key}/callback`
}
