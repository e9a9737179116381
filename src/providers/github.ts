import { NotImplementedError } from '../errors'
import { createHttpClient } from '../http-client'
import { COMMON_OPTIONS, checkClientOptions, mergeEndpoints, type OAuthClientOptions } from './client-options'
import { normalizeProfile } from './normalize-profile'
import { getWithBearer, type ProviderConnection, requestTokens } from './oauth2-request'
import type { CodeExchange, OAuthTokens, OAuthUser, ProviderClient } from './provider-client'

const ENDPOINTS = {
  authorizeUrl: 'https://github.com/login/oauth/authorize',
  tokenUrl: 'https://github.com/login/oauth/access_token',
  apiUrl: 'https://api.github.com',
}

/** Sign in with GitHub: OAuth 2.0 without OpenID Connect; the profile is `GET {apiUrl}/user`. */
export class GitHubClient implements ProviderClient {
  readonly providerName: string
  readonly clientId: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly scopes: readonly string[]
  readonly redirectUri?: string
  readonly pkce: boolean
  readonly extraAudiences: readonly string[]
  readonly #connection: ProviderConnection
  readonly #userUrl: string

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: OAuthClientOptions) {
    checkClientOptions('GitHubClient', options, [...COMMON_OPTIONS, 'endpoints'])
    const { authorizeUrl, tokenUrl, apiUrl } = mergeEndpoints('GitHubClient', ENDPOINTS, options.endpoints)
    const { clientId, clientSecret, providerName = 'github', httpClient = createHttpClient() } = options
    this.providerName = providerName
    this.clientId = clientId
    this.authorizeUrl = authorizeUrl
    this.tokenUrl = tokenUrl
    this.scopes = Object.freeze([...(options.scopes ?? ['read:user', 'user:email'])])
    if (options.redirectUri !== undefined) this.redirectUri = options.redirectUri
    this.pkce = options.pkce ?? true
    this.extraAudiences = Object.freeze([...(options.extraAudiences ?? [])])
    this.#connection = { providerName, clientId, clientSecret, tokenUrl, httpClient, clientAuthentication: 'client_secret_post' }
    this.#userUrl = `${apiUrl.replace(/\/$/, '')}/user`
  }

  /** @throws OAuthError when GitHub refuses (it says so with a 200 and an `error` member) */
  async exchangeCode(input: CodeExchange): Promise<OAuthTokens> {
    if (this.clientId === '') throw new NotImplementedError(`${this.providerName}: clientId is empty; a code cannot be exchanged.`)
    return requestTokens(this.#connection, input)
  }

  /**
   * The email is the public profile address, null when the person keeps it private. The profile says nothing of
   * whether it is verified, so `emailVerified` is always null.
   *
   * @throws OAuthError when GitHub refuses or its answer has no numeric id
   */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const raw = await getWithBearer(this.#connection, this.#userUrl, tokens.accessToken)
    const subject = Number.isSafeInteger(raw['id']) ? raw['id'] : null
    const { email, name, avatar_url: picture } = raw
    return normalizeProfile(this.providerName, { subject, email, emailVerified: null, name, picture, raw })
  }
}
