import type { Request } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderNotConfiguredError } from '../core/errors'
import type { Provider } from '../providers/passport-provider'

/**
 * Returns the client of the route's `:provider`.
 * @throws OAuthProviderNotConfiguredError
 */
export function registeredProvider(ctx: AuthContext, req: Request): { key: string; client: Provider } {
  return findProvider(ctx, String(req.params['provider']))
}

/**
 * Finds a client by its key. `providers` is a Map, so the keys `__proto__` and `constructor` find no client.
 * @throws OAuthProviderNotConfiguredError
 */
export function findProvider(ctx: AuthContext, key: string): { key: string; client: Provider } {
  const client = ctx.providers.get(key)
  if (!client) throw new OAuthProviderNotConfiguredError({ details: { provider: String(key).slice(0, 50) } })
  return { key, client }
}
