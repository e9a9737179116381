import Joi from 'joi'
import { signupOwnershipOf } from '../accounts/email-verification/signup-ownership'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import {
  OAuthAudienceUnverifiableError,
  OAuthError,
  OAuthProviderNotConfiguredError,
  OAuthTokenAudienceMismatchError,
  OAuthTokenRejectedError,
  ValidationError,
} from '../core/errors'
import { withOwnMessage } from '../core/logger'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { forgetUsedInvitation, type InvitationField, invitationField, invitationOf, invitationRefusals } from '../invitations/carried'
import { normalizeProfile } from '../providers/normalize-profile'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import type { OAuthTokens, OAuthUser, TokenProof } from '../providers/provider-client'
import { isPlainObject } from '../providers/provider-request'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { stateRefusals } from '../sessions/account-state'
import { clearEndedCookies } from '../sessions/current-auth'
import { loginAnswer, loginClient, sendLogin } from '../sessions/delivery'
import { newLoginAttempt } from '../sessions/devices/login-limits'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { createClientShare, findProvider } from './client-share'
import { accountRefusals, tokenRefusals } from './describes-callback'
import { type LinkedIdentity, type LinkOptions, linkIdentity } from './link-identity'
import { type IdentityLoginOptions, logInWithIdentity } from './log-in-with-identity'
import { tellingFailures, withProviderErrors } from './provider-errors'

/** Visible ASCII, as in a header (RFC 6750 section 2.1). The maximum length is our choice. */
const accessTokenPattern = /^[\x21-\x7e]{1,8192}$/

export const accessTokenText = Joi.string().pattern(accessTokenPattern)

interface TokenBody extends InvitationField {
  access_token?: string
  id_token?: string
  nonce?: string
}

/** Delivers tokens like the callback: with `both`, in cookies and in the body. So there is no second path below `/cookie`. */
export function tokenRoutes(ctx: AuthContext): Route[] {
  const { tokenDelivery } = ctx.settings
  const setsCookies = tokenDelivery !== 'bearer'
  const share = createClientShare()
  return [
    withBody({
      method: 'POST',
      path: '/oauth/:provider/token',
      describes: {
        summary: 'Log in with an access token or an id_token that an app already has',
        answers: [loginAnswer(ctx, tokenDelivery)],
        refuses: [...stateRefusals(ctx), ...accountRefusals, ...tokenRefusals, OAuthProviderNotConfiguredError, ...invitationRefusals(ctx)],
      },
      delivers: 'login',
      before: [...(setsCookies ? [sameSite(ctx)] : []), routeRateLimit(ctx, 'oauth_token')],
      body: Joi.object<TokenBody>({
        access_token: accessTokenText.optional(),
        id_token: Joi.string().pattern(idTokenPattern).optional(),
        nonce: Joi.string().pattern(noncePattern).optional(),
        ...invitationField(ctx),
      })
        .xor('access_token', 'id_token')
        .without('access_token', 'nonce'),
      handle: async (req, res, { access_token: accessToken = '', id_token: idToken, nonce, invitation: token }) => {
        const provider = String(req.params['provider'])
        const locale = localeOf(ctx, req)
        const given = idToken === undefined ? { provider, accessToken } : { provider, idToken, nonce }
        const client = clientOf(req)
        const attempt = newLoginAttempt(client)
        const invitation = invitationOf(ctx, req, token)
        const options = { locale, evidence: () => signupOwnershipOf(ctx, req), attempt, invitation }
        const result = await share.run(provider, client, () => logInWithToken(ctx, given, loginClient(ctx, req), options))
        await clearEndedCookies(ctx, req, res)
        await forgetUsedInvitation(ctx, req, res, result.userId)
        sendLogin(ctx, res, result, tokenDelivery)
      },
    }),
  ]
}

/** A provider's token that a native app already has. */
export type TokenInHand = AccessTokenInHand | IdTokenInHand

/** A provider's access token. */
export interface AccessTokenInHand {
  /** The key of the provider in the option `providers`, for example `google`. */
  provider: string
  /** 1 to 8,192 visible ASCII characters. */
  accessToken: string
}

/** @throws OAuthProviderNotConfiguredError, ValidationError, what `fetchUserInHand` and `logInWithIdentity` throw */
export async function logInWithToken(
  ctx: AuthContext,
  given: TokenInHand,
  client: LoginClient,
  options: IdentityLoginOptions = {},
): Promise<AnyLoginResult> {
  const attempt = options.attempt ?? newLoginAttempt(null)
  return tellingFailures(ctx, given.provider, attempt, async () =>
    logInWithIdentity(ctx, await fetchUserInHand(ctx, given), client, { ...options, attempt }),
  )
}

/** @throws OAuthProviderNotConfiguredError, ValidationError, what `fetchUserInHand` and `linkIdentity` throw */
export async function linkWithToken(
  ctx: AuthContext,
  userId: string,
  given: TokenInHand,
  options: LinkOptions = {},
): Promise<LinkedIdentity> {
  return linkIdentity(ctx, userId, await fetchUserInHand(ctx, given), options)
}

function fetchUserInHand(ctx: AuthContext, given: TokenInHand): Promise<OAuthUser> {
  return 'idToken' in given ? fetchUserOfIdToken(ctx, given) : fetchUserOfAccessToken(ctx, given)
}

/**
 * The provider must confirm that it issued the token to this application. Otherwise another application could log in here as one of its
 * users, with that user's token (RFC 6749 section 10.16).
 * @throws OAuthAudienceUnverifiableError before any request; OAuthTokenRejectedError when the profile belongs to another person; OAuthError
 */
async function fetchUserOfAccessToken(ctx: AuthContext, { provider, accessToken }: AccessTokenInHand): Promise<OAuthUser> {
  const { key, client } = findProvider(ctx, provider)
  requireAccessToken(accessToken)
  const proof = await verifyAudience(ctx, key, client, accessToken)
  const tokens = { accessToken, tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {}, proof }
  const profile = await withProviderErrors(ctx, [key, 'token'], async () => normalizeProfile(key, await client.fetchUser(tokens)))
  const subject = Number.isSafeInteger(proof.subject) ? String(proof.subject) : proof.subject // the profile's subject is a string
  if (subject !== undefined && subject !== null && subject !== profile.subject) throw new OAuthTokenRejectedError()
  return profile
}

/** For a call by the service. A route has already checked its body. */
function requireAccessToken(accessToken: unknown): void {
  if (typeof accessToken === 'string' && accessTokenPattern.test(accessToken)) return
  throw new ValidationError({ details: { errors: [{ path: 'access_token', rule: 'string.pattern.base' }] } })
}

async function verifyAudience(ctx: AuthContext, key: string, client: Provider, accessToken: string): Promise<TokenProof> {
  if (isPassportProvider(client) || client.clientId === '' || typeof client.verifyTokenAudience !== 'function') {
    throw new OAuthAudienceUnverifiableError({ details: { provider: key } })
  }
  const verdict: unknown = await withProviderErrors(ctx, [key, 'token'], async () => client.verifyTokenAudience?.(accessToken))
  // Our clients throw. A host's client in plain JavaScript can return false instead.
  if (verdict === false) throw new OAuthTokenAudienceMismatchError()
  return isPlainObject(verdict) ? verdict : {}
}

/** An id_token that the system's sign-in dialog gave to an app. */
export interface IdTokenInHand {
  /** The name of the provider in the option `providers`. */
  provider: string
  /** A signed JWT of at most 8,192 characters. */
  idToken: string
  /** The app's nonce, 1 to 512 visible ASCII characters. The token has the nonce itself, or its SHA-256 in hex. */
  nonce?: string | undefined
}

/** RFC 7515 section 7.1. The maximum length is our choice. */
const idTokenPattern = /^(?=.{1,8192}$)[\w-]+\.[\w-]+\.[\w-]+$/
const noncePattern = /^[\x21-\x7e]{1,512}$/

/**
 * Marks the token as used.
 * @throws OAuthProviderNotConfiguredError, ValidationError, OAuthAudienceUnverifiableError before any call
 * @throws what the client's `verifyIdToken` throws, and OAuthTokenRejectedError for a token that was already used
 */
async function fetchUserOfIdToken(ctx: AuthContext, { provider, idToken, nonce }: IdTokenInHand): Promise<OAuthUser> {
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

function requirePattern(path: string, value: unknown, pattern: RegExp): void {
  if (typeof value === 'string' && pattern.test(value)) return
  throw new ValidationError({ details: { errors: [{ path, rule: 'string.pattern.base' }] } })
}

/** Without the signature, which can be written in several ways (spare bits of base64url, the second form of ECDSA). */
async function useOnce(ctx: AuthContext, idToken: string, { proof }: OAuthTokens): Promise<void> {
  const end = Number(proof?.claims?.['exp'])
  if (!Number.isFinite(end)) throw new OAuthError({ cause: withOwnMessage(new Error('verifyIdToken() gave no proof.claims.exp')) })
  const signed = idToken.slice(0, idToken.lastIndexOf('.'))
  if (await ctx.idTokenMarkers.claim(signed, Math.ceil(end))) return
  throw new OAuthTokenRejectedError({ cause: withOwnMessage(new Error('the id_token was used before')) })
}
