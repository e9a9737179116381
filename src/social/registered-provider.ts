import type { Request } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderNotConfiguredError } from '../errors'
import type { ProviderClient } from '../providers/provider-client'

/**
 * The client of the route's `:provider`. A Map behind it: `__proto__` and `constructor` are registered nowhere.
 * @throws OAuthProviderNotConfiguredError
 */
export function registeredProvider(ctx: AuthContext, req: Request): { key: string; client: ProviderClient } {
  const key = String(req.params['provider'])
  const client = ctx.providers.get(key)
  if (!client) throw new OAuthProviderNotConfiguredError({ details: { provider: key.slice(0, 50) } })
  return { key, client }
}
