import { createSecretKey } from 'node:crypto'
import { OAuthProviderUnavailableError } from '../core/errors'
import { type HttpClient, HttpClientError } from '../core/http-client'
import { withOwnMessage } from '../core/logger'
import { callProvider, createRetryClock, isPlainObject, parseJsonObject } from './provider-request'
import {
  type IdTokenAlgorithm,
  isSamePublicKey,
  readVerificationKey,
  signedTokenRefusal,
  type TokenHeader,
  type VerificationKey,
  verifySignature,
} from './signed-token'

export interface KeySetOptions {
  jwksUri: string
  httpClient: HttpClient
  /** In seconds, default 300. After 80 % of that time, the next use reads the set again in the background. */
  lifespanSeconds?: number
  /** In seconds, default 60. Limits the fetches for an unknown `kid`. */
  minRefreshIntervalSeconds?: number
  /** In seconds since the last good read. Default 86,400; 0: off. */
  staleIfErrorSeconds?: number
  now?: () => Date
}

export interface KeySet {
  /**
   * If the set does not know the `kid`, fetches the set again, but not within the cooldown after the last such fetch. The cooldown for our
   * own exchange is only 5 seconds, because a provider can change its keys right after a fetch. That is safe, because an attacker cannot
   * make such a token.
   * A token without `kid` gets the key only if the set has one key (OpenID Connect Core section 10.1). `isRefused`: that key did not sign
   * the token, so it counts as an unknown `kid`.
   * @throws OAuthTokenRejectedError when the set has no such key, or has it in an unusable form
   * @throws OAuthProviderUnavailableError when the set cannot be read or holds no signing key
   */
  find(header: KeyName, asked?: KeyQuestion): Promise<VerificationKey>
  /** Without a promise and without a fetch. Null: call `find`. An unchanged key stays the same object after a later fetch. */
  known(header: KeyName): VerificationKey | null
  /** For a set that cannot be read; at least 1. */
  secondsUntilRetry(): number
}

type KeyName = Pick<TokenHeader<IdTokenAlgorithm>, 'alg' | 'kid'>

interface KeyQuestion {
  isOwnExchange?: boolean
  isRefused?: boolean
}

interface Keys {
  /** By `kid`. A key without `kid` has the name ''. */
  usable: ReadonlyMap<string, readonly VerificationKey[]>
  unusable: ReadonlySet<string>
  /** Without the keys for encryption. */
  count: number
}

const MAX_KEYS = 100
const MAX_KEY_SET_BYTES = 1024 * 1024
const DEFAULT_STALE_SECONDS = 86_400
const OWN_EXCHANGE_COOLDOWN_SECONDS = 5
/** After this part of the lifespan, the next use reads the set again, so no request waits for a fetch. */
const REFRESHED_AT = 0.8

/** RFC 7517. Simultaneous callers share one fetch. Only a use of the set starts a fetch, never a timer. */
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

  /** Null: wait with `read`. Starts a refresh in the background if one is due. */
  function servable(): Keys | null {
    const keys = readWithin(lifespanSeconds) ?? (retry.hasFailedLately() ? readWithin(staleIfErrorSeconds) : null)
    if (keys && !inFlight && retry.isDue() && !readWithin(lifespanSeconds * REFRESHED_AT)) refresh().catch(() => undefined)
    return keys
  }

  /** If the read fails, returns the last good set. */
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
    async find(header, { isOwnExchange = false, isRefused = false } = {}) {
      const served = servable()
      const keys = served ?? (await read())
      if (header.kid === null ? !isRefused : knows(keys, header.kid)) return pick(keys, header)
      // If this call has just read the set, it does not read the set again.
      const cooldown = isOwnExchange ? OWN_EXCHANGE_COOLDOWN_SECONDS : minRefreshIntervalSeconds
      const isDone = !retry.hasFailed() && (served === null || isCoolingDown(cooldown))
      return pick(isDone ? keys : await refreshForUnknown(), header)
    },
  }
}

/** For id_tokens that the provider signs with HS256. */
export function secretKeySet(clientSecret: string): KeySet {
  const key: VerificationKey = { key: createSecretKey(clientSecret, 'utf8'), algorithms: [] }
  return { find: () => Promise.resolve(key), known: () => key, secondsUntilRetry: () => 1 }
}

/**
 * A provider can change its key, which a token without `kid` does not show. So a failed signature of such a token makes the set read again.
 * @throws OAuthTokenRejectedError, OAuthProviderUnavailableError as `find`
 */
export async function verifyByKeySet(
  keySet: KeySet,
  token: string,
  header: KeyName,
  asked: KeyQuestion = {},
): Promise<Record<string, unknown>> {
  const { key } = await keySet.find(header, asked)
  if (header.kid !== null || key.type === 'secret') return verifySignature(token, key, header.alg)
  try {
    return verifySignature(token, key, header.alg)
  } catch {
    return verifySignature(token, (await keySet.find(header, { ...asked, isRefused: true })).key, header.alg)
  }
}

function knows({ usable, unusable }: Keys, kid: string): boolean {
  return usable.has(kid) || unusable.has(kid)
}

function pick(keys: Keys, header: KeyName): VerificationKey {
  const key = only(keys, header)
  if (key) return key
  if (keys.usable.size === 0 && !keys.unusable.has(header.kid ?? '')) throw unreadable('it holds no signing key')
  if (header.kid === null)
    throw signedTokenRefusal(
      `the header names no key (kid), and the key set has ${keys.count}: have the provider name the key in its tokens`,
    )
  throw signedTokenRefusal('the key set has no such key, or not for this algorithm: check jwksUri')
}

/** Null if two keys match, because the right key is unknown. */
function only({ usable, count }: Keys, { kid, alg }: KeyName): VerificationKey | null {
  let found: VerificationKey | null = null
  for (const key of (kid === null ? count === 1 && [...usable.values()].flat() : usable.get(kid)) || []) {
    if (!key.algorithms.some((algorithm) => algorithm === alg)) continue
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
  const forTokens = members.filter((jwk) => !isForEncryption(jwk))
  for (const jwk of forTokens) {
    const name = isPlainObject(jwk) ? jwk['kid'] : null
    const kid = typeof name === 'string' ? name : ''
    const read = readVerificationKey(jwk)
    const key = read && (earlier?.usable.get(kid)?.find((other) => isSameKey(other, read)) ?? read)
    if (key) usable.set(kid, [...(usable.get(kid) ?? []), key])
    else unusable.add(kid)
  }
  return { usable, unusable, count: forTokens.length }
}

/** Such a key counts as absent, because the specification drops the keys with `use` equal to `enc`. */
function isForEncryption(jwk: unknown): boolean {
  return isPlainObject(jwk) && jwk['use'] === 'enc'
}

function isSameKey(one: VerificationKey, other: VerificationKey): boolean {
  return isSamePublicKey(one.key, other.key) && one.algorithms.join() === other.algorithms.join()
}
