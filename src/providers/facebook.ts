import { createHmac } from 'node:crypto'
import { ConfigurationError, OAuthAudienceUnverifiableError } from '../core/errors'
import type { OAuthClientOptions } from './client-options'
import { debugToken } from './inspect-token'
import { normalizeProfile, refuseOtherSubject } from './normalize-profile'
import { OAuth2Client } from './oauth2-client'
import { getWithBearer } from './oauth2-request'
import type { OAuthTokens, OAuthUser, TokenProof } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { signedTokenRefusal } from './signed-token'
import { requireAudience } from './token-verifier'

export interface FacebookClientOptions extends OAuthClientOptions {
  /** The version of the Graph API, `v24.0` by default. Facebook switches off a version about two years after its release. */
  graphVersion?: string
}

const FIELDS = 'id,name,email,picture.type(large)'

/**
 * Sign in with Facebook: OAuth 2.0 without OpenID Connect. The profile is `GET {apiUrl}/me`. Facebook does not say whether an address is
 * verified, so no address counts as verified. `clientSecret` is required, because each call sends an `appsecret_proof` made from the
 * secret.
 */
export class FacebookClient extends OAuth2Client<ReturnType<typeof endpointsOf>> {
  readonly #apiUrl: string

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: FacebookClientOptions) {
    const endpoints = endpointsOf(Object(options).graphVersion)
    super(options, { providerName: 'facebook', endpoints, scopes: ['public_profile', 'email'], options: ['graphVersion'] })
    if (this.connection().clientSecret === '' && this.clientId !== '')
      throw new ConfigurationError(
        'FacebookClient: clientSecret is empty, but appsecret_proof needs it; set clientSecret to the app secret.',
      )
    this.#apiUrl = this.endpoints.apiUrl.replace(/\/$/, '')
  }

  /**
   * Reads the profile.
   *
   * @throws OAuthError when Facebook refuses, or its response has no id
   * @throws OAuthTokenRejectedError if an app's token belongs to another person
   */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const query = new URLSearchParams({ fields: FIELDS, appsecret_proof: this.#proofOf(tokens.accessToken) })
    const raw = await getWithBearer(this.connection(), `${this.#apiUrl}/me?${query}`, tokens)
    const { id, email, name, picture } = raw
    // Facebook makes this id for one app. In another app, the same person has another id.
    if (typeof id !== 'string' || !/^\d{1,32}$/.test(id)) throw unusableIdentity(this.providerName, 'the profile has no id')
    refuseOtherSubject(tokens.proof, id)
    const { url } = Object(Object(picture).data)
    return normalizeProfile(this.providerName, { subject: id, email, emailVerified: null, name, picture: url, raw })
  }

  /**
   * Asks Facebook which app the token was issued to (`GET {apiUrl}/debug_token`, with the credentials of this app).
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthError (our credentials), OAuthProviderUnavailableError
   */
  async verifyTokenAudience(accessToken: string): Promise<TokenProof> {
    if (this.clientId === '') throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
    const { app_id: app, is_valid: isValid, type, user_id: sub } = await debugToken(this.connection(), this.#apiUrl, accessToken)
    requireAudience({ client_id: app }, [this.clientId, ...this.extraAudiences])
    if (isValid !== true || type !== 'USER') throw signedTokenRefusal('the token is not valid, or not a person’s')
    return { claims: { sub } }
  }

  /** If the app's settings at Facebook require this proof, a stolen token alone is useless. */
  #proofOf(accessToken: string): string {
    return createHmac('sha256', this.connection().clientSecret).update(accessToken).digest('hex')
  }
}

/** Without a version, Facebook uses the oldest version that the app may use, and that version changes over time. */
function endpointsOf(version: unknown = 'v24.0') {
  if (typeof version !== 'string' || !/^v\d{1,3}\.\d$/.test(version))
    throw new ConfigurationError('FacebookClient: graphVersion must be a version of the Graph API, for example v24.0.')
  return {
    authorizeUrl: `https://www.facebook.com/${version}/dialog/oauth`,
    tokenUrl: `https://graph.facebook.com/${version}/oauth/access_token`,
    apiUrl: `https://graph.facebook.com/${version}`,
  }
}
