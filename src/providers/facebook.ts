import { createHmac } from 'node:crypto'
import { ConfigurationError, OAuthAudienceUnverifiableError } from '../errors'
import { requireAudience } from './audience'
import type { OAuthClientOptions } from './client-options'
import { debugToken } from './inspect-token'
import { normalizeProfile } from './normalize-profile'
import { OAuth2Client } from './oauth2-client'
import { getWithBearer } from './oauth2-request'
import { refuseOtherSubject } from './proven-subject'
import type { OAuthTokens, OAuthUser, TokenProof } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { refused } from './signed-token'

export interface FacebookClientOptions extends OAuthClientOptions {
  /** The version of the Graph API, such as `v24.0`, which is the default. Facebook ends each about two years after its release. */
  graphVersion?: string
}

const FIELDS = 'id,name,email,picture.type(large)'

/**
 * Sign in with Facebook: OAuth 2.0 without OpenID Connect; the profile is `GET {apiUrl}/me`. Facebook does not say whether an address is verified,
 * so none is. Each call shows by `appsecret_proof` that the app's secret is known; `clientSecret` is required.
 */
export class FacebookClient extends OAuth2Client<ReturnType<typeof endpointsOf>> {
  readonly #apiUrl: string

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: FacebookClientOptions) {
    const endpoints = endpointsOf(Object(options).graphVersion)
    super(options, { providerName: 'facebook', endpoints, scopes: ['public_profile', 'email'], options: ['graphVersion'] })
    if (this.connection().clientSecret === '' && this.clientId !== '')
      throw new ConfigurationError('FacebookClient: clientSecret is empty, and appsecret_proof is made of it; set it to the app secret.')
    this.#apiUrl = this.endpoints.apiUrl.replace(/\/$/, '')
  }

  /** @throws OAuthError when Facebook refuses or its answer has no id; OAuthTokenRejectedError for a token in hand of somebody else */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const query = new URLSearchParams({ fields: FIELDS, appsecret_proof: this.#proofOf(tokens.accessToken) })
    const raw = await getWithBearer(this.connection(), `${this.#apiUrl}/me?${query}`, tokens)
    const { id, email, name, picture } = raw
    // The id of a person for this one app; another app of yours sees another id.
    if (typeof id !== 'string' || !/^\d{1,32}$/.test(id)) throw unusableIdentity(this.providerName, 'the profile has no id')
    refuseOtherSubject(tokens.proof, id)
    const { url } = Object(Object(picture).data)
    return normalizeProfile(this.providerName, { subject: id, email, emailVerified: null, name, picture: url, raw })
  }

  /**
   * Asks Facebook, as this app, which app the token was issued to (`GET {apiUrl}/debug_token`).
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthError (our credentials), OAuthProviderUnavailableError
   */
  async verifyTokenAudience(accessToken: string): Promise<TokenProof> {
    if (this.clientId === '') throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
    const { app_id: app, is_valid: isValid, type, user_id: sub } = await debugToken(this.connection(), this.#apiUrl, accessToken)
    requireAudience({ client_id: app }, [this.clientId, ...this.extraAudiences])
    if (isValid !== true || type !== 'USER') throw refused('the token is not valid, or not a person’s')
    return { claims: { sub } }
  }

  /** A token that was stolen from somewhere else is of no use without it. */
  #proofOf(accessToken: string): string {
    return createHmac('sha256', this.connection().clientSecret).update(accessToken).digest('hex')
  }
}

/** Without a version Facebook takes the oldest one that the app may use, which changes by itself. */
function endpointsOf(version: unknown = 'v24.0') {
  if (typeof version !== 'string' || !/^v\d{1,3}\.\d$/.test(version))
    throw new ConfigurationError('FacebookClient: graphVersion must be a version of the Graph API, for example v24.0.')
  return {
    authorizeUrl: `https://www.facebook.com/${version}/dialog/oauth`,
    tokenUrl: `https://graph.facebook.com/${version}/oauth/access_token`,
    apiUrl: `https://graph.facebook.com/${version}`,
  }
}
