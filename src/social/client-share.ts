import type { Request } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderNotConfiguredError, OAuthProviderUnavailableError } from '../core/errors'
import { isPassportProvider, type Provider } from '../providers/passport-provider'

export interface ClientShare {
  /** `client`: `clientOf(req)`; null: no limit. @throws OAuthProviderUnavailableError if the client already uses its share */
  run<Result>(provider: string, client: string | null, logIn: () => Promise<Result>): Promise<Result>
}

/** From this number on, a client cannot start a second login. A provider client makes at most 50 calls at once, so 20 stay free. */
const mostForOneClient = 30

/** One client within its rate limit could use all calls of a slow provider. A rejected callback can be repeated (`state` unused). */
export function createClientShare(): ClientShare {
  const underWay = new Map<string, Map<string, number>>()

  function clientsOf(provider: string): Map<string, number> {
    const clients = underWay.get(provider) ?? new Map<string, number>()
    underWay.set(provider, clients)
    return clients
  }

  function end(provider: string, client: string): void {
    const clients = clientsOf(provider)
    const left = (clients.get(client) ?? 0) - 1
    if (left > 0) clients.set(client, left)
    else clients.delete(client)
    if (clients.size === 0) underWay.delete(provider)
  }

  return {
    async run(provider, client, logIn) {
      if (client === null) return logIn()
      const clients = clientsOf(provider)
      const own = clients.get(client) ?? 0
      if (own > 0 && sum(clients.values()) >= mostForOneClient) throw refusal(provider)
      clients.set(client, own + 1)
      try {
        return await logIn()
      } finally {
        end(provider, client)
      }
    },
  }
}

function refusal(provider: string): OAuthProviderUnavailableError {
  return new OAuthProviderUnavailableError({ details: { provider, status: null, body: null } })
}

function sum(counts: Iterable<number>): number {
  let total = 0
  for (const count of counts) total += count
  return total
}

/** @throws OAuthProviderNotConfiguredError */
export function registeredProvider(ctx: AuthContext, req: Request): { key: string; client: Provider } {
  return findProvider(ctx, String(req.params['provider']))
}

/** A Map, so the keys `__proto__` and `constructor` find no client. @throws OAuthProviderNotConfiguredError */
export function findProvider(ctx: AuthContext, key: string): { key: string; client: Provider } {
  const client = ctx.providers.get(key)
  if (!client) throw new OAuthProviderNotConfiguredError({ details: { provider: String(key).slice(0, 50) } })
  return { key, client }
}

/** Exactly as registered at the provider. Never depends on the Host header. */
export function redirectUriOf({ settings, prefix }: Pick<AuthContext, 'settings' | 'prefix'>, key: string, client: Provider): string {
  const own = isPassportProvider(client) ? undefined : client.redirectUri
  return own ?? `${settings.publicUrl}${prefix}/oauth/${key}/callback`
}
