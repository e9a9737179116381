import { InvalidTokenError, OAuthProviderUnavailableError, OAuthTokenRejectedError, ServiceUnavailableError } from '../core/errors'
import type { AccessKey, JwtAlgorithm, NamedAccessKey } from '../core/keys'
import type { KeySet } from '../providers/key-set'
import type { VerificationKey } from '../providers/verification-key'
import { type AccessTokenHeader, findAccessKey } from '../sessions/access-token'
import type { VerifyingKey } from '../sessions/signature'

/** The keys that a guard trusts. */
export interface TokenKeys {
  /**
   * Returns the key for a token with this header. For one key, the function always returns the same object. The function returns a promise
   * only if it must fetch the key.
   * @throws InvalidTokenError if there is no such key; ServiceUnavailableError if the key set cannot be fetched now
   */
  find(header: AccessTokenHeader): VerifyingKey | Promise<VerifyingKey>
  /** Returns true if `find` would return this key now, without a fetch. */
  isCurrent(key: VerifyingKey): boolean
}

/** Returns the keys of this process: `jwtKeys`, or the key derived from the secret. The keys never change. */
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

/** Returns the keys that another process publishes. A token must use one of `algorithms`. */
export function publishedKeys(keySet: KeySet, algorithms: readonly JwtAlgorithm[]): TokenKeys {
  const found = new WeakMap<VerificationKey, PublishedKey>()

  /**
   * Returns the key with the one algorithm that its tokens must use. If the key set names no `alg`, the function chooses the first
   * algorithm of the list that fits the key.
   */
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
      // Converts the errors of a provider's key set to the errors of a guard.
      if (error instanceof OAuthTokenRejectedError) throw new InvalidTokenError({ cause: error, reason: 'unknown_key' })
      if (!(error instanceof OAuthProviderUnavailableError)) throw error
      throw new ServiceUnavailableError({ cause: error, details: { retry_after_seconds: keySet.secondsUntilRetry() } })
    }
  }

  return {
    find(header) {
      // Rejects two kinds of tokens before any fetch: tokens signed with a shared secret, and tokens with an unlisted algorithm.
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
