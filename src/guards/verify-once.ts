import type { AuthContext } from '../context'
import { readTokenHeader, refuseExpired, verifyUnder } from '../session/access-token'
import type { VerifyingKey } from '../session/signature'
import type { TokenAuth } from './current-auth'
import { rememberedTokens } from './remembered-tokens'
import { seenBefore } from './seen-before'
import type { TokenKeys } from './token-keys'

interface Verified {
  readonly auth: TokenAuth
  /** The very key that checked the signature. */
  readonly key: VerifyingKey
}

/**
 * Who a token speaks for. Its signature is checked twice, not at every request: a token that was verified in full, and that
 * came before, is remembered by its whole text, and believed again while it has not expired and while its key is still the
 * one it would be verified with. What comes only once is not worth the memory. A promise only where a key has to be fetched.
 * @throws InvalidTokenError, TokenExpiredError, UnauthorizedError; ServiceUnavailableError where keys cannot be fetched
 */
export function verifyOnce(
  { settings, now }: { settings: Pick<AuthContext['settings'], 'rememberedTokens'>; now: () => Date },
  keys: TokenKeys,
): (token: string) => TokenAuth | Promise<TokenAuth> {
  const remembered = rememberedTokens<Verified>(settings.rememberedTokens)
  const cameBefore = seenBefore(settings.rememberedTokens)

  function verify(token: string, key: VerifyingKey): TokenAuth {
    const auth = { claims: verifyUnder(key, token, now()), user: null }
    if (cameBefore(token)) remembered.keep(token, { auth, key })
    return auth
  }

  async function verifyUnderFetched(token: string, key: Promise<VerifyingKey>): Promise<TokenAuth> {
    const fetched = await key
    const seen = remembered.find(token) // the set was read again, and its key is the same
    return seen?.key === fetched ? living(seen) : verify(token, fetched)
  }

  function living({ auth }: Verified): TokenAuth {
    refuseExpired(auth.claims, now())
    return auth
  }

  return (token) => {
    const seen = remembered.find(token)
    if (seen && keys.isCurrent(seen.key)) return living(seen)
    const key = keys.find(readTokenHeader(token))
    return key instanceof Promise ? verifyUnderFetched(token, key) : verify(token, key)
  }
}
