import type { AuthContext } from '../context'
import { OAuthAudienceUnverifiableError, OAuthError, OAuthTokenRejectedError, ValidationError } from '../core/errors'
import { withOwnMessage } from '../core/logger'
import { normalizeProfile } from '../providers/normalize-profile'
import { isPassportProvider } from '../providers/passport-provider'
import type { OAuthTokens, OAuthUser } from '../providers/provider-client'
import { withProviderErrors } from './provider-errors'
import { findProvider } from './registered-provider'

/** An id_token that the system's sign-in dialog gave to an app. */
export interface IdTokenInHand {
  /** The name of the provider in the option `providers`. */
  provider: string
  /** A signed JWT of at most 8,192 characters. */
  idToken: string
  /** The app's nonce, 1 to 512 visible ASCII characters. The token has the nonce itself, or its SHA-256 in hex. */
  nonce?: string | undefined
}

/** The form of RFC 7515 section 7.1. The maximum length is our choice. */
export const idTokenPattern = /^(?=.{1,8192}$)[\w-]+\.[\w-]+\.[\w-]+$/
export const noncePattern = /^[\x21-\x7e]{1,512}$/

/**
 * Returns the profile of an id_token, and marks the token as used. Reads no account.
 * @throws OAuthProviderNotConfiguredError, ValidationError, OAuthAudienceUnverifiableError before any call
 * @throws what the client's `verifyIdToken` throws, and OAuthTokenRejectedError for a token that was already used
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

/** Checks the input of a call by the service. A route has already checked its body. */
function requirePattern(path: string, value: unknown, pattern: RegExp): void {
  if (typeof value === 'string' && pattern.test(value)) return
  throw new ValidationError({ details: { errors: [{ path, rule: 'string.pattern.base' }] } })
}

/**
 * Marks the signed part of the token as used. Leaves the signature out, because the same signature can be written in several ways (spare
 * bits of base64url, the second form of ECDSA).
 */
async function useOnce(ctx: AuthContext, idToken: string, { proof }: OAuthTokens): Promise<void> {
  const end = Number(proof?.claims?.['exp'])
  if (!Number.isFinite(end)) throw new OAuthError({ cause: withOwnMessage(new Error('verifyIdToken() gave no proof.claims.exp')) })
  const signed = idToken.slice(0, idToken.lastIndexOf('.'))
  if (await ctx.idTokenMarkers.claim(signed, Math.ceil(end))) return
  throw new OAuthTokenRejectedError({ cause: withOwnMessage(new Error('the id_token was used before')) })
}
