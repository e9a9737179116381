import { ConfigurationError, NotImplementedError } from '../errors'
import { createHttpClient } from '../http-client'
import { COMMON_OPTIONS, checkClientOptions, mergeEndpoints, type OAuthClientOptions } from './client-options'
import { normalizeProfile } from './normalize-profile'
import { getListWithBearer, getWithBearer, type ProviderConnection, requestTokens } from './oauth2-request'
import type { CodeExchange, OAuthTokens, OAuthUser, ProviderClient } from './provider-client'

const ENDPOINTS = {
  authorizeUrl: 'https://github.com/login/oauth/authorize',
  tokenUrl: 'https://github.com/login/oauth/access_token',
  apiUrl: 'https://api.github.com',
}

export interface GitHubClientOptions extends OAuthClientOptions {
  /**
   * True: the email is the person's primary address, also a private one, with GitHub's word on whether it is verified,
   * from one more call (`GET {apiUrl}/user/emails`). Such an email may link by verified email. Default false.
   */
  verifiedEmails?: boolean
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
  readonly #verifiedEmails: boolean
  readonly #trustEmail: boolean

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: GitHubClientOptions) {
    checkClientOptions('GitHubClient', options, [...COMMON_OPTIONS, 'endpoints', 'verifiedEmails'])
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
    this.#verifiedEmails = readsEmails(options.verifiedEmails, this.scopes)
    this.#trustEmail = options.trustEmail !== false
  }

  /** @throws OAuthError when GitHub refuses (it says so with a 200 and an `error` member) */
  async exchangeCode(input: CodeExchange): Promise<OAuthTokens> {
    if (this.clientId === '') throw new NotImplementedError(`${this.providerName}: clientId is empty; a code cannot be exchanged.`)
    return requestTokens(this.#connection, input)
  }

  /**
   * The email is the public profile address, null when the person keeps it private. The profile says nothing of
   * whether it is verified, so `emailVerified` is null; with `verifiedEmails` both come from GitHub's list of addresses.
   *
   * @throws OAuthError when GitHub refuses or its answer has no numeric id
   */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const raw = await getWithBearer(this.#connection, this.#userUrl, tokens.accessToken)
    const subject = Number.isSafeInteger(raw['id']) ? raw['id'] : null
    const { email, name, avatar_url: picture } = raw
    const address = this.#verifiedEmails ? await this.#primaryAddress(tokens) : { email, emailVerified: null }
    return normalizeProfile(this.providerName, { ...address, subject, name, picture, raw })
  }

  /** The other addresses of an account may be old ones, or on their way out: only the primary one is the person's. */
  async #primaryAddress({ accessToken }: OAuthTokens): Promise<{ email: unknown; emailVerified: boolean | null }> {
    const addresses = await getListWithBearer(this.#connection, `${this.#userUrl}/emails?per_page=100`, accessToken)
    const primary = addresses.find((address) => address['primary'] === true)
    if (!primary) return { email: null, emailVerified: null }
    return { email: primary['email'], emailVerified: this.#trustEmail ? primary['verified'] === true : null }
  }
}

/** @throws ConfigurationError */
function readsEmails(wanted: unknown, scopes: readonly string[]): boolean {
  if (wanted !== undefined && typeof wanted !== 'boolean')
    throw new ConfigurationError('GitHubClient: verifiedEmails must be true or false.')
  if (wanted === true && !scopes.includes('user:email') && !scopes.includes('user')) {
    throw new ConfigurationError("GitHubClient: verifiedEmails needs the scope 'user:email' (or 'user'); add it to scopes.")
  }
  return wanted === true
}
