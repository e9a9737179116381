import { isAbsoluteAddress } from '../core/config/web-address'
import { OAuthProviderUnavailableError } from '../core/errors'
import { type HttpClient, HttpClientError } from '../core/http-client'
import { createKeySet, type KeySet } from '../providers/key-set'
import { callProvider, parseJsonObject } from '../providers/provider-request'

interface DiscoveredKeysOptions {
  readonly issuer: string
  readonly httpClient: HttpClient
  readonly now?: () => Date
  readonly staleIfErrorSeconds?: number
}

/**
 * How many seconds the guard waits after a failure before the next request. Without the wait, each invalid token would cause a request to
 * the issuer.
 */
const restSeconds = 10

/**
 * Returns the keys of an issuer. The function reads the metadata at the well-known addresses (RFC 8414 section 3, then OpenID Discovery 1.0
 * section 4). The first token starts the first fetch. Parallel calls share one discovery.
 */
export function discoveredKeys({ issuer, ...options }: DiscoveredKeysOptions): KeySet {
  let keys: KeySet | null = null
  let looking: Promise<KeySet> | null = null
  let failedAt: number | null = null
  const secondsLeft = () => (failedAt === null ? 0 : restSeconds - (performance.now() - failedAt) / 1000)

  async function discover(): Promise<KeySet> {
    try {
      const jwksUri = await findKeySetAddress(issuer, options.httpClient)
      keys = createKeySet({ jwksUri, ...options })
      return keys
    } catch (error) {
      failedAt = performance.now()
      throw error
    }
  }

  function look(): Promise<KeySet> {
    if (secondsLeft() > 0) return Promise.reject(new OAuthProviderUnavailableError())
    looking ??= discover().finally(() => {
      looking = null
    })
    return looking
  }

  return {
    known: (header) => keys?.known(header) ?? null,
    find: async (header) => (keys ?? (await look())).find(header),
    secondsUntilRetry: () => keys?.secondsUntilRetry() ?? Math.max(1, Math.ceil(secondsLeft())),
  }
}

async function findKeySetAddress(issuer: string, httpClient: HttpClient): Promise<string> {
  for (const url of metadataAddresses(issuer)) {
    const document = await fetchDocument(url, httpClient)
    // The metadata must name the same issuer (RFC 8414 section 3.3). Otherwise, one issuer could publish keys for another issuer.
    const { issuer: named, jwks_uri: address } = document ?? {}
    if (named === issuer && typeof address === 'string' && isAbsoluteAddress(address)) return address
  }
  throw new OAuthProviderUnavailableError({ message: `no metadata of the issuer ${issuer} that names its keys` })
}

function metadataAddresses(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/oauth-authorization-server`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

async function fetchDocument(url: string, httpClient: HttpClient): Promise<Record<string, unknown> | null> {
  try {
    const { status, body } = await callProvider(httpClient, url, { headers: { accept: 'application/json' }, purpose: 'discovery' })
    return status >= 200 && status < 300 ? parseJsonObject(body) : null
  } catch (error) {
    if (error instanceof HttpClientError) return null // the next address can still respond
    throw error
  }
}
