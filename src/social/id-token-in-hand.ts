import type { AuthContext } from '../context'
import { OAuthAudienceUnverifiableError, OAuthError, OAuthTokenRejectedError, ValidationError } from '../errors'
import { withOwnMessage } from '../logger'
import { normalizeProfile } from '../providers/normalize-profile'
import { isPassportProvider } from '../providers/passport-provider'
import type { OAuthTokens, OAuthUser } from '../providers/provider-client'
import { withProviderErrors } from './provider-errors'
import { findProvider } from './registered-provider'

/** An id_token that a sheet of the system gave to an app. */
export interface IdTokenInHand {
  /** The registration key. */
  provider: string
  /** A signed JWT of at most 8,192 characters. */
  idToken: string
  /** What the app gave to the sheet, as it is or as its SHA-256 in hex: 1 to 512 visible ASCII characters. */
  nonce?: string | undefined
}

/** RFC 7515 section 7.1; the bound is ours. */
export const idTokenPattern = /^(?=.{1,8192}$)[\w-]+\.[\w-]+\.[\w-]+$/
export const noncePattern = /^[\x21-\x7e]{1,512}$/

/**
 * The profile of an id_token, which is used up by it. No account is looked at.
 * @throws OAuthProviderNotConfiguredError, ValidationError, OAuthAudienceUnverifiableError before any call, what the client's
 *   `verifyIdToken` throws, and OAuthTokenRejectedError for one that was used
 */
export async function fetchUserOfIdToken(ctx: AuthContext, { provider, idToken, nonce }: IdTokenInHand): Promise<OAuthUser> {
  const { key, client } = findProvider(ctx, provider)
  requirePattern('id_token', idToken, idTokenPattern)
  if (nonce !== undefined) requirePattern('nonce', nonce, noncePattern)
  if (isPassportProvider(client) || client.clientId === '' || typeof client.verifyIdToken !== 'function')
    throw new OAuthAudienceUnverifiableError({ details: { provider: key } })
  const verifyIdToken = client.verifyIdToken.bind(client)
  const tokens = await withProviderErrors(ctx, [key, 'token'], async () => verifyIdToken(idToken, nonce ?? null))
  const profile = await withProviderErrors(ctx, [key, 'token'], async () => normalizeProfile(key, await client.fetchUser(tokens)))
  await useOnce(ctx, idToken, tokens)
  return profile
}

/** For callers of the service; a route's body was held to the same. */
function requirePattern(path: string, value: unknown, pattern: RegExp): void {
  if (typeof value === 'string' && pattern.test(value)) return
  throw new ValidationError({ details: { errors: [{ path, rule: 'string.pattern.base' }] } })
}

/** The same token may be spelled with other signatures (spare bits of base64url, the second form of ECDSA): what was signed is marked. */
async function useOnce(ctx: AuthContext, idToken: string, { proof }: OAuthTokens): Promise<void> {
  const end = Number(proof?.claims?.['exp'])
  if (!Number.isFinite(end)) throw new OAuthError({ cause: withOwnMessage(new Error('verifyIdToken() gave no proof.claims.exp')) })
  const signed = idToken.slice(0, idToken.lastIndexOf('.'))
  if (await ctx.idTokenMarkers.claim(signed, Math.ceil(end))) return
  throw new OAuthTokenRejectedError({ cause: withOwnMessage(new Error('the id_token was used before')) })
}
