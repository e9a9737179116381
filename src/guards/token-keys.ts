import { isAbsoluteAddress } from '../core/config/web-address'
import { InvalidTokenError, OAuthProviderUnavailableError, OAuthTokenRejectedError, ServiceUnavailableError } from '../core/errors'
import { type HttpClient, HttpClientError } from '../core/http-client'
import type { AccessKey, JwtAlgorithm, NamedAccessKey } from '../core/keys'
import { createKeySet, type KeySet } from '../providers/key-set'
import { callProvider, parseJsonObject } from '../providers/provider-request'
import type { VerificationKey } from '../providers/signed-token'
import type { VerifyingKey } from '../sessions/access-keys'
import { type AccessTokenHeader, findAccessKey } from '../sessions/access-token'

export interface TokenKeys {
  /** A promise only for a fetch. @throws InvalidTokenError (no such key), ServiceUnavailableError (no key set now) */
  find(header: AccessTokenHeader): VerifyingKey | Promise<VerifyingKey>
  /** `find` would return this key now, without a fetch. */
  isCurrent(key: VerifyingKey): boolean
}

/** `jwtKeys`, or the key derived from the secret. They never change. */
export function ownKeys(keys: readonly AccessKey[]): TokenKeys {
  return {
    find(header) {
      const key = findAccessKey(keys, header)
      if (!key) throw new InvalidTokenError({ reason: 'unknown_key' })
      return key
    },
    isCurrent: () => true,
  }
}

type PublishedHeader = Exclude<AccessTokenHeader, { kid: null }>

interface PublishedKey extends Pick<NamedAccessKey, 'algorithm' | 'key'> {
  readonly header: PublishedHeader
}

/** Of another process. A token must use one of `algorithms`. */
export function publishedKeys(keySet: KeySet, algorithms: readonly JwtAlgorithm[]): TokenKeys {
  const found = new WeakMap<VerificationKey, PublishedKey>()

  /** Each key has one algorithm. If the key set names no `alg`, the first of the list that fits. */
  function published(header: PublishedHeader, read: VerificationKey): PublishedKey {
    const known = found.get(read)
    const algorithm = known?.algorithm ?? algorithms.find((candidate) => read.algorithms.includes(candidate))
    if (algorithm === undefined || algorithm !== header.alg) throw new InvalidTokenError({ reason: 'unknown_key' })
    const key = known ?? { algorithm, key: read.key, header }
    found.set(read, key)
    return key
  }

  async function ask(header: PublishedHeader): Promise<VerifyingKey> {
    try {
      return published(header, await keySet.find(header))
    } catch (error) {
      if (error instanceof OAuthTokenRejectedError) throw new InvalidTokenError({ cause: error, reason: 'unknown_key' })
      if (!(error instanceof OAuthProviderUnavailableError)) throw error
      throw new ServiceUnavailableError({ cause: error, details: { retry_after_seconds: keySet.secondsUntilRetry() } })
    }
  }

  return {
    find(header) {
      // Rejects a token signed with a shared secret, or with an unlisted algorithm, before any fetch.
      if (header.kid === null || !algorithms.includes(header.alg)) throw new InvalidTokenError({ reason: 'unknown_key' })
      const read = keySet.known(header)
      return read ? published(header, read) : ask(header)
    },
    isCurrent(key) {
      const { header } = key as PublishedKey // only `find` makes keys
      const read = keySet.known(header)
      return read !== null && found.get(read) === key
    },
  }
}

interface DiscoveredKeysOptions {
  readonly issuer: string
  readonly httpClient: HttpClient
  readonly now?: () => Date
  readonly staleIfErrorSeconds?: number
}

/** Seconds after a failure. Without the wait, each invalid token would cause a request to the issuer. */
const restSeconds = 10

/** From RFC 8414 section 3, then OpenID Discovery 1.0 section 4, at the first token. Parallel calls share one discovery. */
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
    // RFC 8414 section 3.3. Otherwise, one issuer could publish keys for another.
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
