import { OAuthAudienceUnverifiableError } from '../core/errors'
import type { OAuthClientOptions } from './client-options'
import { readAuthorization } from './inspect-token'
import { normalizeProfile, refuseOtherSubject } from './normalize-profile'
import { OAuth2Client } from './oauth2-client'
import { getWithBearer } from './oauth2-request'
import type { OAuthTokens, OAuthUser, TokenProof } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { requireAudience } from './token-verifier'

const ENDPOINTS = {
  authorizeUrl: 'https://discord.com/oauth2/authorize',
  tokenUrl: 'https://discord.com/api/oauth2/token',
  apiUrl: 'https://discord.com/api/v10',
}

/** Sign in with Discord: OAuth 2.0 without OpenID Connect. `GET {apiUrl}/users/@me` also says whether the address is verified. */
export class DiscordClient extends OAuth2Client<typeof ENDPOINTS> {
  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: OAuthClientOptions) {
    super(options, { providerName: 'discord', endpoints: ENDPOINTS, scopes: ['identify', 'email'], options: [] })
  }

  /**
   * Reads the profile.
   *
   * @throws OAuthError when Discord refuses, or its response has no id
   * @throws OAuthTokenRejectedError if an app's token belongs to another person
   */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const raw = await getWithBearer(this.connection(), `${this.endpoints.apiUrl}/users/@me`, tokens)
    const { id, email, verified, global_name: name, username, avatar } = raw
    if (typeof id !== 'string' || !/^\d{1,20}$/.test(id)) throw unusableIdentity(this.providerName, 'the profile has no id')
    refuseOtherSubject(tokens.proof, id)
    return normalizeProfile(this.providerName, {
      subject: id,
      email,
      emailVerified: this.trustsEmail ? verified : null,
      name: name ?? username,
      picture: typeof avatar === 'string' && /^\w+$/.test(avatar) ? `https://cdn.discordapp.com/avatars/${id}/${avatar}.png` : null,
      raw,
    })
  }

  /**
   * Asks Discord which application the token was issued to (`GET {apiUrl}/oauth2/@me`).
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthProviderUnavailableError
   */
  async verifyTokenAudience(accessToken: string): Promise<TokenProof> {
    if (this.clientId === '') throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
    const { application, user } = await readAuthorization(this.connection(), `${this.endpoints.apiUrl}/oauth2/@me`, accessToken)
    requireAudience({ client_id: Object(application).id }, [this.clientId, ...this.extraAudiences])
    return { claims: { sub: Object(user).id } }
  }
}
