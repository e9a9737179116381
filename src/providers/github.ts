import { ConfigurationError, OAuthAudienceUnverifiableError, OAuthError, OAuthTokenAudienceMismatchError } from '../core/errors'
import type { OAuthClientOptions } from './client-options'
import { checkApplication } from './inspect-token'
import { normalizeProfile, refuseOtherSubject, requireSubject } from './normalize-profile'
import { OAuth2Client } from './oauth2-client'
import { getListWithBearer, getWithBearer } from './oauth2-request'
import type { OAuthTokens, OAuthUser, TokenProof } from './provider-client'
import { isPlainObject } from './provider-request'

const ENDPOINTS = {
  authorizeUrl: 'https://github.com/login/oauth/authorize',
  tokenUrl: 'https://github.com/login/oauth/access_token',
  apiUrl: 'https://api.github.com',
}

export interface GitHubClientOptions extends OAuthClientOptions {
  /**
   * True: reads the person's primary address, even if it is private. GitHub also says whether the address is verified. This option needs
   * one more call (`GET {apiUrl}/user/emails`). If GitHub verified the address, the login can link an account by verified email. Default
   * false.
   */
  verifiedEmails?: boolean
}

/** Sign in with GitHub: OAuth 2.0 without OpenID Connect. The profile is `GET {apiUrl}/user`. */
export class GitHubClient extends OAuth2Client<typeof ENDPOINTS> {
  readonly #apiUrl: string
  readonly #userUrl: string
  readonly #verifiedEmails: boolean

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: GitHubClientOptions) {
    super(options, { providerName: 'github', endpoints: ENDPOINTS, scopes: ['read:user', 'user:email'], options: ['verifiedEmails'] })
    this.#apiUrl = this.endpoints.apiUrl.replace(/\/$/, '')
    this.#userUrl = `${this.#apiUrl}/user`
    this.#verifiedEmails = readsEmails(options.verifiedEmails, this.scopes)
  }

  /**
   * Reads the profile. Without `verifiedEmails`, the email is the public address, or else the primary address if GitHub verified it.
   * `emailVerified` is null in both cases. With `verifiedEmails`, the email and `emailVerified` come from GitHub's list of addresses.
   *
   * @throws OAuthError when GitHub refuses or its response has no numeric id
   */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const raw = await getWithBearer(this.connection(), this.#userUrl, tokens)
    const subject = requireSubject(this.providerName, Number.isSafeInteger(raw['id']) ? raw['id'] : null)
    refuseOtherSubject(tokens.proof, subject)
    const { email, name, avatar_url: picture } = raw
    const address = this.#verifiedEmails
      ? await this.#primaryAddress(tokens)
      : { email: email ?? (await this.#privateAddress(tokens)), emailVerified: null }
    return normalizeProfile(this.providerName, { ...address, subject, name, picture, raw })
  }

  /**
   * Asks GitHub whether the token was issued to this application (`POST {apiUrl}/applications/{client_id}/token`). `extraAudiences` have no
   * effect, because GitHub answers only for the application with this secret. The check needs a client secret.
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthError (our credentials), OAuthProviderUnavailableError
   * @throws OAuthAudienceUnverifiableError when `clientId` or the client secret is missing
   */
  async verifyTokenAudience(accessToken: string): Promise<TokenProof> {
    if (this.clientId === '' || this.connection().clientSecret === '')
      throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
    const { app, user } = await checkApplication(this.connection(), this.#apiUrl, accessToken)
    // A 200 already confirms the token. If GitHub also names the client id of the application, the id must be ours.
    const named = isPlainObject(app) ? app['client_id'] : undefined
    if (typeof named === 'string' && named !== this.clientId) throw new OAuthTokenAudienceMismatchError()
    return { claims: { sub: isPlainObject(user) ? user['id'] : undefined } }
  }

  async #primaryAddress(tokens: OAuthTokens): Promise<{ email: unknown; emailVerified: boolean | null }> {
    const primary = await this.#primary(tokens)
    if (!primary) return { email: null, emailVerified: null }
    return { email: primary['email'], emailVerified: this.trustsEmail ? primary['verified'] === true : null }
  }

  /** Null: not verified, or GitHub refuses the list. The login can still succeed, because a linked identity needs no address. */
  async #privateAddress(tokens: OAuthTokens): Promise<unknown> {
    if (!showsEmails(this.scopes)) return null
    try {
      const primary = await this.#primary(tokens)
      return primary?.['verified'] === true ? primary['email'] : null
    } catch (error) {
      if (error instanceof OAuthError && isRefusal(error.details['status'])) return null
      throw error
    }
  }

  /** Only the primary address, because the other addresses of an account can be old. */
  async #primary(tokens: OAuthTokens): Promise<Record<string, unknown> | null> {
    const addresses = await getListWithBearer(this.connection(), `${this.#userUrl}/emails?per_page=100`, tokens)
    return addresses.find((address) => address['primary'] === true) ?? null
  }
}

function showsEmails(scopes: readonly string[]): boolean {
  return scopes.includes('user:email') || scopes.includes('user')
}

function isRefusal(status: unknown): boolean {
  return typeof status === 'number' && status >= 400 && status < 500
}

/** @throws ConfigurationError if `verifiedEmails` is malformed or lacks its scope */
function readsEmails(wanted: unknown, scopes: readonly string[]): boolean {
  if (wanted !== undefined && typeof wanted !== 'boolean')
    throw new ConfigurationError('GitHubClient: verifiedEmails must be true or false.')
  if (wanted === true && !showsEmails(scopes)) {
    throw new ConfigurationError("GitHubClient: verifiedEmails needs the scope 'user:email' (or 'user'); add it to scopes.")
  }
  return wanted === true
}
