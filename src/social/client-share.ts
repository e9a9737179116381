import { OAuthProviderUnavailableError } from '../errors'

/** Logins that this process is working on, of one route. */
export interface ClientShare {
  /** Runs a login of a client (`clientKey(req.ip)`). @throws OAuthProviderUnavailableError for a client that has its share under way */
  run<Result>(provider: string, client: string, logIn: () => Promise<Result>): Promise<Result>
}

/** Of the 50 calls that a provider client makes at once for each purpose, 20 are left for clients that have none. */
const mostForOneClient = 30

/**
 * Keeps room at a slow provider for every client. While 30 logins of a provider are under way, a client that has one of them gets no other,
 * because the rate limit of a route allows one client more calls at once than a provider client makes. The refused login can be sent
 * again: its `state` is not used.
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
