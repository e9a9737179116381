import { OAuthProviderUnavailableError } from '../errors'
import { type HttpClient, HttpClientError } from '../http-client'
import { withOwnMessage } from '../logger'
import { callProvider, isPlainObject, parseJsonObject } from './provider-request'
import { createRetryClock } from './retry-clock'
import { refused, type TokenHeader } from './signed-token'
import { isSamePublicKey, readVerificationKey, type VerificationKey } from './verification-key'

export interface KeySetOptions {
  jwksUri: string
  httpClient: HttpClient
  /**
   * How long a key set is used after it was read, in seconds; default 300. After 80 % of that time, the next use reads the set again in the
   * background.
   */
  lifespanSeconds?: number
  /** The least time between two fetches for an unknown `kid`, in seconds; default 60. */
  minRefreshIntervalSeconds?: number
  /** How long the last good key set is used if a new read fails, in seconds since the last good read. Default 86,400; 0: off. */
  staleIfErrorSeconds?: number
  now?: () => Date
}

export interface KeySet {
  /**
   * Returns the key for a token with this header. If the set does not know the `kid`, `find` fetches the set again. Exception: `find` does
   * not fetch during the cooldown after the last such fetch. For a token from our own exchange, the cooldown is only 5 seconds, because a
   * provider can change its keys right after the last fetch. The short cooldown is safe, because an attacker cannot make such a token.
   *
   * @throws OAuthTokenRejectedError when the set has no such key, or has it in an unusable form
   * @throws OAuthProviderUnavailableError when the set cannot be read or holds no signing key
   */
  find(header: KeyName, asked?: { isOwnExchange: boolean }): Promise<VerificationKey>
  /**
   * Returns the key like `find`, but at once: without a promise and without a fetch. Null: call `find`. If a later fetch returns an
   * unchanged key, the key stays the same object.
   */
  known(header: KeyName): VerificationKey | null
  /** Returns the seconds until the next fetch of a set that cannot be read; at least 1. */
  secondsUntilRetry(): number
}

/** The parts of a token's header that identify its key. */
type KeyName = Pick<TokenHeader, 'alg' | 'kid'>

interface Keys {
  usable: ReadonlyMap<string, readonly VerificationKey[]>
  unusable: ReadonlySet<string>
}

const MAX_KEYS = 100
const MAX_KEY_SET_BYTES = 1024 * 1024
const DEFAULT_STALE_SECONDS = 86_400
const OWN_EXCHANGE_COOLDOWN_SECONDS = 5
/** After this part of the lifespan, the next use reads the set again in the background. So no request waits for a fetch. */
const REFRESHED_AT = 0.8

/**
 * Caches a provider's published keys (RFC 7517). Simultaneous callers share one fetch. No timer starts a fetch. Only a use of the set
 * starts a fetch.
 */
export function createKeySet(options: KeySetOptions): KeySet {
  const { lifespanSeconds = 300, minRefreshIntervalSeconds = 60, staleIfErrorSeconds = DEFAULT_STALE_SECONDS } = options
  const now = options.now ?? (() => new Date())
  const retry = createRetryClock(now)
  let cached: { keys: Keys; at: number } | null = null
  let askedForUnknownAt: number | null = null
  let inFlight: Promise<Keys> | null = null

  // If the clock was set back, `at` is in the future. The period then counts as over, so that no lifespan and no cooldown becomes longer.
  const isWithin = (at: number, seconds: number) => {
    const elapsed = now().getTime() - at
    return elapsed >= 0 && elapsed < seconds * 1000
  }
  /** Returns the last set if it is younger than `seconds`. */
  const readWithin = (seconds: number) => (cached !== null && isWithin(cached.at, seconds) ? cached.keys : null)
  const isCoolingDown = (seconds: number) => askedForUnknownAt !== null && isWithin(askedForUnknownAt, seconds)

  async function fetchOnce(): Promise<Keys> {
    const at = now().getTime()
    try {
      const keys = await fetchKeys(options, cached?.keys ?? null)
      const isGood = keys.usable.size > 0
      // If a new set has no signing key, the read counts as failed, and the known keys stay.
      if (!isGood && readWithin(Math.max(lifespanSeconds, staleIfErrorSeconds))) throw unreadable('it holds no signing key')
      cached = { keys, at }
      if (isGood) retry.succeeded()
      else retry.failed()
      return keys
    } catch (error) {
      retry.failed()
      throw error
    }
  }

  function refresh(): Promise<Keys> {
    if (!inFlight && !retry.isDue()) return Promise.reject(unreadable('it failed lately'))
    inFlight ??= fetchOnce().finally(() => {
      inFlight = null
    })
    return inFlight
  }

  function refreshForUnknown(): Promise<Keys> {
    if (!inFlight && retry.isDue()) askedForUnknownAt = now().getTime()
    return refresh()
  }

  /** Returns the set if it can be used without waiting. Starts a refresh in the background if a refresh is due. */
  function servable(): Keys | null {
    const keys = readWithin(lifespanSeconds) ?? (retry.hasFailedLately() ? readWithin(staleIfErrorSeconds) : null)
    if (keys && !inFlight && retry.isDue() && !readWithin(lifespanSeconds * REFRESHED_AT)) refresh().catch(() => undefined)
    return keys
  }

  /** Reads the set now. If the read fails, returns the last good set. */
  async function read(): Promise<Keys> {
    try {
      return await refresh()
    } catch (error) {
      const keys = readWithin(staleIfErrorSeconds)
      if (keys) return keys
      throw error
    }
  }

  return {
    known(header) {
      const keys = header.kid === null ? null : servable()
      return keys && only(keys, header)
    },
    secondsUntilRetry() {
      const cooldown = askedForUnknownAt === null ? 0 : minRefreshIntervalSeconds - (now().getTime() - askedForUnknownAt) / 1000
      const seconds = retry.secondsLeft() ?? Math.min(cooldown, minRefreshIntervalSeconds)
      return Math.max(1, Math.ceil(seconds))
    },
    async find(header, { isOwnExchange } = { isOwnExchange: false }) {
      if (header.kid === null) throw refused('the header names no key (kid)')
      const served = servable()
      const keys = served ?? (await read())
      if (knows(keys, header.kid)) return pick(keys, header)
      // If this call has just read the set, it does not read the set again.
      const cooldown = isOwnExchange ? OWN_EXCHANGE_COOLDOWN_SECONDS : minRefreshIntervalSeconds
      const isDone = !retry.hasFailed() && (served === null || isCoolingDown(cooldown))
      return pick(isDone ? keys : await refreshForUnknown(), header)
    },
  }
}

function knows({ usable, unusable }: Keys, kid: string): boolean {
  return usable.has(kid) || unusable.has(kid)
}

function pick(keys: Keys, header: KeyName): VerificationKey {
  const key = only(keys, header)
  if (key) return key
  if (keys.usable.size === 0 && !keys.unusable.has(header.kid ?? '')) throw unreadable('it holds no signing key')
  throw refused('the key set has no such key, or not for this algorithm: check jwksUri')
}

/** Returns the only key with this name and algorithm. Null if two keys match, because the right key is unknown. */
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
    const answer = await callProvider(httpClient, jwksUri, {
      headers: { accept: 'application/json' },
      maxBytes: MAX_KEY_SET_BYTES,
      purpose: 'keys',
    })
    const members = answer.status >= 200 && answer.status < 300 ? parseJsonObject(answer.body)?.['keys'] : null
    if (!Array.isArray(members) || members.length > MAX_KEYS)
      throw unreadable(`status ${answer.status}, no list of at most ${MAX_KEYS} keys`)
    return readKeys(members, earlier)
  } catch (error) {
    throw error instanceof HttpClientError ? unreadable(error.code) : error
  }
}

function unreadable(why: string): OAuthProviderUnavailableError {
  const reason = `the key set cannot be read (${why}): check jwksUri, and that this server can reach it`
  return new OAuthProviderUnavailableError({ cause: withOwnMessage(new Error(reason)) })
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
