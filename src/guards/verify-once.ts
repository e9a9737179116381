import type { GuardSettings } from '../core/config/guard-settings'
import { type SetupWarnings, tokenFromTheFuture } from '../core/setup-warnings'
import type { VerifyingKey } from '../sessions/access-keys'
import {
  type AccessTokenHeader,
  type ProfileSettings,
  readTokenHeader,
  refuseExpired,
  tokenProfileOf,
  verifyUnder,
} from '../sessions/access-token'
import type { KnownAuth } from '../sessions/current-auth'
import type { TokenKeys } from './token-keys'

interface Verified {
  readonly auth: KnownAuth
  /** The key that verified the signature. */
  readonly key: VerifyingKey
}

/**
 * Returns a function that returns the claims of a token. The function verifies the signature at the first two requests with a token. Then
 * the function remembers the whole text of the token. The function accepts a remembered token until the token expires, or until its key is
 * no longer in use. The function returns a promise only if it must fetch a key.
 * @throws InvalidTokenError, TokenExpiredError, UnauthorizedError; ServiceUnavailableError if the keys cannot be fetched
 */
export function verifyOnce(
  {
    settings,
    now,
    notices,
  }: { settings: Pick<GuardSettings, 'rememberedTokens' | 'realm'> & ProfileSettings; now: () => Date; notices: SetupWarnings },
  keys: TokenKeys,
): (token: string) => KnownAuth | Promise<KnownAuth> {
  const remembered = rememberedTokens<Verified>(settings.rememberedTokens)
  const cameBefore = seenBefore(settings.rememberedTokens)

  const profile = tokenProfileOf(settings)

  function verify(token: string, header: AccessTokenHeader, key: VerifyingKey): KnownAuth {
    const auth = { claims: verifyUnder(key, { token, header }, { now: now(), profile, settings }), user: null }
    const notice = tokenFromTheFuture(auth.claims.iat, now())
    if (notice) notices.tell(notice)
    if (cameBefore(token)) remembered.keep(token, { auth, key })
    return auth
  }

  async function verifyUnderFetched(token: string, header: AccessTokenHeader, key: Promise<VerifyingKey>): Promise<KnownAuth> {
    const fetched = await key
    // The guard may have fetched the key set again. If the set still contains the key that verified this token, the token is not verified
    // again.
    const seen = remembered.find(token)
    return seen?.key === fetched ? living(seen) : verify(token, header, fetched)
  }

  function living({ auth }: Verified): KnownAuth {
    refuseExpired(auth.claims, now())
    return auth
  }

  return (token) => {
    const seen = remembered.find(token)
    if (seen && keys.isCurrent(seen.key)) return living(seen)
    const header = readTokenHeader(token)
    const key = keys.find(header)
    return key instanceof Promise ? verifyUnderFetched(token, header, key) : verify(token, header, key)
  }
}

interface RememberedTokens<T> {
  find(token: string): T | undefined
  keep(token: string, value: T): void
  /** The number of remembered tokens. A token in both generations counts twice. */
  readonly size: number
}

/**
 * The maximum length of a remembered token. The library's own tokens have a few hundred characters. With this limit, one token needs at
 * most about 4 KiB of memory.
 */
const longest = 2048

/**
 * Remembers at most `limit` tokens by their whole text. There are two generations. If the new generation is full, it replaces the old
 * generation, and an empty new generation begins. The whole old generation is dropped in one step, so no request waits until many tokens
 * are removed. If a guard finds a token in the old generation, the map also puts the token into the new generation.
 */
export function rememberedTokens<T>(limit: number): RememberedTokens<T> {
  const perGeneration = Math.max(1, Math.floor(limit / 2))
  let young = new Map<string, T>()
  let old = new Map<string, T>()

  function put(token: string, value: T): void {
    if (young.size >= perGeneration) {
      old = limit > 1 ? young : new Map()
      young = new Map()
    }
    young.set(token, value)
  }

  return {
    find(token) {
      const found = young.get(token)
      if (found !== undefined || old.size === 0) return found
      const again = old.get(token)
      if (again !== undefined) put(token, again)
      return again
    },
    keep(token, value) {
      if (limit === 0 || token.length > longest) return
      put(token, value)
    },
    get size() {
      return young.size + old.size
    },
  }
}

/**
 * Returns a function that checks whether the guard saw a token recently. The function stores fingerprints in a table of fixed size, so the
 * table never grows and stores no token. Two tokens can have the same fingerprint. The guard then remembers the second token at its first
 * request, which does no harm.
 */
function seenBefore(limit: number): (token: string) => boolean {
  const places = 2 ** Math.ceil(Math.log2(Math.max(limit, 16)))
  const seen = new Int32Array(places)
  return (token) => {
    const print = fingerprint(token)
    const place = print & (places - 1)
    if (seen[place] === print) return true
    seen[place] = print
    return false
  }
}

/**
 * Returns a hash of the end of the signature: FNV-1a over the last 12 characters (at most 72 bits). The end of a signature is practically
 * random.
 */
function fingerprint(token: string): number {
  let print = 0x811c9dc5
  for (let at = Math.max(0, token.length - 12); at < token.length; at++) print = Math.imul(print ^ token.charCodeAt(at), 0x01000193)
  return print ^ (print >>> 15)
}
