import { NotImplementedError } from '../core/errors'
import { createHttpClient } from '../core/http-client'
import { createAuthenticate } from './client-authentication'
import {
  authorizeParamsOf,
  COMMON_OPTIONS,
  checkClientOptions,
  mergeEndpoints,
  type OAuthClientOptions,
  type ProviderEndpoints,
} from './client-options'
import { connectTo, type ProviderConnection, requestTokens } from './oauth2-request'
import type { CodeExchange, OAuthTokens, OAuthUser, ProviderClient, TokenProof } from './provider-client'

interface ProviderDefaults<Endpoints extends ProviderEndpoints> {
  readonly providerName: string
  readonly endpoints: Endpoints
  readonly scopes: readonly string[]
  readonly options: readonly string[]
}

export abstract class OAuth2Client<Endpoints extends ProviderEndpoints & { authorizeUrl: string; tokenUrl: string }>
  implements ProviderClient
{
  readonly providerName: string
  readonly clientId: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly scopes: readonly string[]
  readonly redirectUri?: string
  readonly icon?: string
  readonly pkce: boolean
  readonly extraAudiences: readonly string[]
  readonly reauthenticates: boolean
  readonly authorizeParams: Readonly<Record<string, string>>
  // Private (`#`), because printing a client must not print the client's secret.
  readonly #connection: ProviderConnection
  readonly #endpoints: Endpoints
  readonly #trustsEmail: boolean
  #now = () => new Date()

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: OAuthClientOptions, defaults: ProviderDefaults<Endpoints>) {
    const owner = new.target.name
    checkClientOptions(owner, options, [...COMMON_OPTIONS, 'endpoints', ...defaults.options])
    const endpoints = mergeEndpoints(owner, defaults.endpoints, options.endpoints)
    const { clientId, clientSecret = '', providerName = defaults.providerName, httpClient = createHttpClient() } = options
    const { tokenUrl } = endpoints
    this.providerName = providerName
    this.clientId = clientId
    this.authorizeUrl = endpoints.authorizeUrl
    this.tokenUrl = tokenUrl
    this.scopes = Object.freeze([...(options.scopes ?? defaults.scopes)])
    if (options.redirectUri !== undefined) this.redirectUri = options.redirectUri
    if (options.icon !== undefined) this.icon = options.icon
    this.pkce = options.pkce ?? true
    this.reauthenticates = options.reauthenticates === true
    this.authorizeParams = authorizeParamsOf(options)
    this.extraAudiences = Object.freeze([...(options.extraAudiences ?? [])])
    const authenticate = createAuthenticate(options, { owner, audience: tokenUrl, now: () => this.#now() })
    this.#connection = connectTo({ providerName, clientId, clientSecret, authenticate, tokenUrl, httpClient })
    this.#endpoints = Object.freeze(endpoints)
    this.#trustsEmail = options.trustEmail !== false
  }

  /** @throws OAuthError when the provider refuses or its response cannot be used */
  async exchangeCode(input: CodeExchange): Promise<OAuthTokens> {
    if (this.clientId === '') throw new NotImplementedError(`${this.providerName}: clientId is empty; a code cannot be exchanged.`)
    return requestTokens(this.#connection, input)
  }

  /** For the times in the JWTs that the client signs. */
  useClock(now: () => Date): void {
    this.#now = now
  }

  abstract fetchUser(tokens: OAuthTokens): Promise<OAuthUser>

  abstract verifyTokenAudience(accessToken: string): Promise<TokenProof>

  /** A method and no accessor, because printing a client also prints the values of its accessors. */
  protected connection(): ProviderConnection {
    return this.#connection
  }

  protected get endpoints(): Endpoints {
    return this.#endpoints
  }

  protected get trustsEmail(): boolean {
    return this.#trustsEmail
  }
}
