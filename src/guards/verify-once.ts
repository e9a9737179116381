import type { GuardSettings } from '../core/config/guard-settings'
import { tokenFromTheFuture } from '../core/setup-warnings/login-notices'
import type { SetupWarnings } from '../core/setup-warnings/notices'
import { type AccessTokenHeader, readTokenHeader, refuseExpired, verifyUnder } from '../sessions/access-token'
import type { KnownAuth } from '../sessions/current-auth'
import type { VerifyingKey } from '../sessions/signature'
import { type ProfileSettings, tokenProfileOf } from '../sessions/token-profile'
import { rememberedTokens } from './remembered-tokens'
import { seenBefore } from './seen-before'
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
