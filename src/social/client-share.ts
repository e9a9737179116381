import type { Request } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderNotConfiguredError, OAuthProviderUnavailableError } from '../core/errors'
import { isPassportProvider, type Provider } from '../providers/passport-provider'

/** Limits how many logins of one client run at a provider at the same time, in this process and for one route. */
export interface ClientShare {
  /** Runs a login of a client (`clientOf(req)`; null: no limit). @throws OAuthProviderUnavailableError if the client already uses its share */
  run<Result>(provider: string, client: string | null, logIn: () => Promise<Result>): Promise<Result>
}

/**
 * The number of running logins from which the limit applies. Then a client with a running login cannot start another login. A provider
 * client makes at most 50 calls at once for each purpose, so 20 calls stay free for clients without a running login.
 */
const mostForOneClient = 30

/**
 * Keeps a slow provider usable for every client. If 30 logins of a provider are running, a client that has one of them cannot start a
 * second login. A route's rate limit allows one client more calls at once than a provider client makes. So without this share, one client
 * could use all calls. A rejected callback can be repeated, because its `state` is not used up.
 */
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

/** Returns the redirect URI exactly as the host registered it at the provider. The URI never depends on the Host header. */
export function redirectUriOf({ settings, prefix }: Pick<AuthContext, 'settings' | 'prefix'>, key: string, client: Provider): string {
  const own = isPassportProvider(client) ? undefined : client.redirectUri
  return own ?? `${settings.publicUrl}${prefix}/oauth/${key}/callback`
}
