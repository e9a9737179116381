import { OAuthProviderUnavailableError } from '../errors'
import { type HttpClient, HttpClientError } from '../http-client'
import { callProvider, isPlainObject, parseJsonObject } from './provider-request'
import { refused, type TokenHeader } from './signed-token'
import { isSamePublicKey, readVerificationKey, type VerificationKey } from './verification-key'

export interface KeySetOptions {
  jwksUri: string
  httpClient: HttpClient
  /** How long a key set that was read is used; default 300. */
  lifespanSeconds?: number
  /** How long after a fetch an unknown `kid` or a failure does not cause another; default 60. */
  minRefreshIntervalSeconds?: number
  now?: () => Date
}

export interface KeySet {
  /**
   * The key that may check a token with this header.
   *
   * @throws OAuthTokenRejectedError when the set that was read has no such key, or has it in an unusable form
   * @throws OAuthProviderUnavailableError when the set cannot be read or holds no signing key
   */
  find(header: KeyName): Promise<VerificationKey>
  /**
   * The same key while the set that was read is within its lifespan, without a promise and never with a fetch; null: ask
   * `find`. A key that is read again unchanged stays the same object.
   */
  known(header: KeyName): VerificationKey | null
  /** Until an unreadable set is asked for again; at least 1. */
  secondsUntilRetry(): number
}

/** What of a token's header finds its key. */
type KeyName = Pick<TokenHeader, 'alg' | 'kid'>

interface Keys {
  usable: ReadonlyMap<string, readonly VerificationKey[]>
  unusable: ReadonlySet<string>
}

const MAX_KEYS = 100
const MAX_KEY_SET_BYTES = 1024 * 1024

/** A provider's published keys (RFC 7517), cached; callers at the same moment share one fetch. */
export function createKeySet(options: KeySetOptions): KeySet {
  const { lifespanSeconds = 300, minRefreshIntervalSeconds = 60, now = () => new Date() } = options
  let cached: { keys: Keys; at: number } | null = null
  let lastAttempt: { at: number; hasFailed: boolean } | null = null
  let inFlight: Promise<Keys> | null = null

  // A clock set back must neither stretch a lifespan nor a cooldown: an instant in the future is over.
  const isWithin = (at: number, seconds: number) => {
    const elapsed = now().getTime() - at
    return elapsed >= 0 && elapsed < seconds * 1000
  }
  const isCoolingDown = () => lastAttempt !== null && isWithin(lastAttempt.at, minRefreshIntervalSeconds)

  async function fetchOnce(): Promise<Keys> {
    const at = now().getTime()
    try {
      const keys = await fetchKeys(options, cached?.keys ?? null)
      // No signing key is as good as no answer, and takes away none of the keys that are known.
      if (keys.usable.size === 0 && cached && isWithin(cached.at, lifespanSeconds)) throw new OAuthProviderUnavailableError()
      cached = { keys, at }
      lastAttempt = { at, hasFailed: false }
      return keys
    } catch (error) {
      lastAttempt = { at, hasFailed: true }
      throw error
    }
  }

  function refresh(): Promise<Keys> {
    if (isCoolingDown() && lastAttempt?.hasFailed) return Promise.reject(new OAuthProviderUnavailableError())
    inFlight ??= fetchOnce().finally(() => {
      inFlight = null
    })
    return inFlight
  }

  return {
    known: (header) => (cached !== null && header.kid !== null && isWithin(cached.at, lifespanSeconds) ? only(cached.keys, header) : null),
    secondsUntilRetry() {
      const elapsed = lastAttempt === null ? minRefreshIntervalSeconds : (now().getTime() - lastAttempt.at) / 1000
      return Math.max(1, Math.ceil(minRefreshIntervalSeconds - Math.max(0, elapsed)))
    },
    async find(header) {
      if (header.kid === null) throw refused('the header names no key')
      const isFresh = cached !== null && isWithin(cached.at, lifespanSeconds)
      const keys = isFresh && cached ? cached.keys : await refresh()
      if (knows(keys, header.kid)) return pick(keys, header)
      const isDone = !isFresh || (isCoolingDown() && !lastAttempt?.hasFailed)
      return pick(isDone ? keys : await refresh(), header)
    },
  }
}

function knows({ usable, unusable }: Keys, kid: string): boolean {
  return usable.has(kid) || unusable.has(kid)
}

function pick(keys: Keys, header: KeyName): VerificationKey {
  const key = only(keys, header)
  if (key) return key
  if (keys.usable.size === 0 && !keys.unusable.has(header.kid ?? '')) throw new OAuthProviderUnavailableError()
  throw refused('the key set has no such key, or not for this algorithm')
}

/** Two keys of one name for one algorithm: which one is meant cannot be known, so it is none. */
function only({ usable }: Keys, { kid, alg }: KeyName): VerificationKey | null {
  let found: VerificationKey | null = null
  for (const key of usable.get(kid ?? '') ?? []) {
    if (!key.algorithms.includes(alg)) continue
    if (found) return null
    found = key
  }
  return found
}

async function fetchKeys({ httpClient, jwksUri }: KeySetOptions, earlier: Keys | null): Promise<Keys> {
  try {
    const answer = await callProvider(httpClient, jwksUri, { headers: { accept: 'application/json' }, maxBytes: MAX_KEY_SET_BYTES })
    const members = answer.status >= 200 && answer.status < 300 ? parseJsonObject(answer.body)?.['keys'] : null
    if (!Array.isArray(members) || members.length > MAX_KEYS) throw new OAuthProviderUnavailableError()
    return readKeys(members, earlier)
  } catch (error) {
    throw error instanceof HttpClientError ? new OAuthProviderUnavailableError({ cause: error }) : error
  }
}

function readKeys(members: unknown[], earlier: Keys | null): Keys {
  const usable = new Map<string, VerificationKey[]>()
  const unusable = new Set<string>()
  for (const jwk of members) {
    const kid = isPlainObject(jwk) ? jwk['kid'] : null
    if (typeof kid !== 'string' || kid === '') continue
    const read = readVerificationKey(jwk)
    const key = read && (earlier?.usable.get(kid)?.find((other) => isSameKey(other, read)) ?? read)
    if (key) usable.set(kid, [...(usable.get(kid) ?? []), key])
    else unusable.add(kid)
  }
  return { usable, unusable }
}

function isSameKey(one: VerificationKey, other: VerificationKey): boolean {
  return isSamePublicKey(one.key, other.key) && one.algorithms.join() === other.algorithms.join()
}
