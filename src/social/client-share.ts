import { OAuthProviderUnavailableError } from '../core/errors'

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
