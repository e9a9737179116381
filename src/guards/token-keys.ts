import { InvalidTokenError, OAuthProviderUnavailableError, OAuthTokenRejectedError, ServiceUnavailableError } from '../errors'
import type { AccessKey, JwtAlgorithm, NamedAccessKey } from '../keys'
import type { KeySet } from '../providers/key-set'
import type { VerificationKey } from '../providers/verification-key'
import { type AccessTokenHeader, findAccessKey } from '../session/access-token'
import type { VerifyingKey } from '../session/signature'

/** The keys that a guard trusts. */
export interface TokenKeys {
  /**
   * Returns the key that may verify a token with this header, always the same object for one key. Returns a promise only if the key must be
   * fetched.
   * @throws InvalidTokenError when there is no such key; ServiceUnavailableError when the keys cannot be read now
   */
  find(header: AccessTokenHeader): VerifyingKey | Promise<VerifyingKey>
  /** Returns true if `find` would return this key now, without a fetch. */
  isCurrent(key: VerifyingKey): boolean
}

/** Returns the keys of this process: `jwtKeys`, or the key derived from the secret. They never change. */
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

/** Returns the keys that another process publishes. Only `algorithms` may verify a token here. */
export function publishedKeys(keySet: KeySet, algorithms: readonly JwtAlgorithm[]): TokenKeys {
  const found = new WeakMap<VerificationKey, PublishedKey>()

  /** Returns the key with its one algorithm: its own `alg`, or else the first of the list that fits it. */
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
      // Turns the errors of a provider's key set into those of a guard.
      if (error instanceof OAuthTokenRejectedError) throw new InvalidTokenError({ cause: error, reason: 'unknown_key' })
      if (!(error instanceof OAuthProviderUnavailableError)) throw error
      throw new ServiceUnavailableError({ cause: error, details: { retry_after_seconds: keySet.secondsUntilRetry() } })
    }
  }

  return {
    find(header) {
      // A token under a shared secret, or with an algorithm that is not listed, is rejected before anything is fetched.
      if (header.kid === null || !algorithms.includes(header.alg)) throw new InvalidTokenError({ reason: 'unknown_key' })
      const read = keySet.known(header)
      return read ? published(header, read) : ask(header)
    },
    isCurrent(key) {
      const { header } = key as PublishedKey // `find` above made it
      const read = keySet.known(header)
      return read !== null && found.get(read) === key
    },
  }
}
