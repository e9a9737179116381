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
  /** Verified the signature. */
  readonly key: VerifyingKey
}

/**
 * Remembers a token at its second request, until it expires or its key is no longer in use. Returns a promise only to fetch a key.
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
    // The guard may have fetched the key set again. The token is not verified again while the set has its key.
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
  /** A token in both generations counts twice. */
  readonly size: number
}

/** Our own tokens have a few hundred characters. With this limit, one token needs at most about 4 KiB of memory. */
const longest = 2048

/** Of two generations, the whole old one is dropped in one step, so that no request waits. A find moves a token to the new one. */
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

/** Never grows and stores no token. After a collision, the second token is remembered at its first request: no harm. */
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

/** FNV-1a over the last 12 characters (at most 72 bits): the end of a signature is practically random. */
function fingerprint(token: string): number {
  let print = 0x811c9dc5
  for (let at = Math.max(0, token.length - 12); at < token.length; at++) print = Math.imul(print ^ token.charCodeAt(at), 0x01000193)
  return print ^ (print >>> 15)
}
