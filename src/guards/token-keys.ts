import { InvalidTokenError, OAuthProviderUnavailableError, OAuthTokenRejectedError, ServiceUnavailableError } from '../errors'
import type { AccessKey, JwtAlgorithm, NamedAccessKey } from '../keys'
import type { KeySet } from '../providers/key-set'
import type { VerificationKey } from '../providers/verification-key'
import { type AccessTokenHeader, findAccessKey } from '../session/access-token'
import type { VerifyingKey } from '../session/signature'

/** Whose signatures a guard believes. */
export interface TokenKeys {
  /**
   * The key that may check a token with this header: one object for one key. A promise only where it has to be fetched.
   * @throws InvalidTokenError there is no such key; ServiceUnavailableError the keys cannot be read now
   */
  find(header: AccessTokenHeader): VerifyingKey | Promise<VerifyingKey>
  /** Whether `find` would answer this key now, without fetching anything. */
  isCurrent(key: VerifyingKey): boolean
}

/** The keys this process has: `jwtKeys`, or the one derived from the secret. They are the same until it ends. */
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

/** The keys another process publishes. `algorithms` is the closed list of what may check a token here. */
export function publishedKeys(keySet: KeySet, algorithms: readonly JwtAlgorithm[]): TokenKeys {
  const found = new WeakMap<VerificationKey, PublishedKey>()

  /** One algorithm per key: its own `alg`; where the set names none, the first of the list that it can do. */
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
      // A provider's refusals become those of a guard.
      if (error instanceof OAuthTokenRejectedError) throw new InvalidTokenError({ cause: error, reason: 'unknown_key' })
      if (!(error instanceof OAuthProviderUnavailableError)) throw error
      throw new ServiceUnavailableError({ cause: error, details: { retry_after_seconds: keySet.secondsUntilRetry() } })
    }
  }

  return {
    find(header) {
      // A token under a shared secret, or under what is not in the list, is refused before anything is fetched.
      if (header.kid === null || !algorithms.includes(header.alg)) throw new InvalidTokenError({ reason: 'unknown_key' })
      const read = keySet.known(header)
      return read ? published(header, read) : ask(header)
    },
    isCurrent(key) {
      const { header } = key as PublishedKey // `find` above has made it
      const read = keySet.known(header)
      return read !== null && found.get(read) === key
    },
  }
}
