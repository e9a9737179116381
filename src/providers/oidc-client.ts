import {
  AppError,
  ConfigurationError,
  NotImplementedError,
  OAuthAudienceUnverifiableError,
  OAuthError,
  OAuthProviderUnavailableError,
} from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import { withOwnMessage } from '../core/logger'
import { type ClientAuthentication, type ClientCredentials, createAuthenticate } from './client-authentication'
import {
  authorizeParamsOf,
  checkClientOptions,
  checkKeySetOptions,
  KEY_SET_OPTIONS,
  type KeySetClientOptions,
  requireEndpoint,
  requirePkce,
} from './client-options'
import {
  type BackgroundDiscovery,
  createBackgroundDiscovery,
  type DiscoveredEndpoints,
  type ProviderFacts,
  readDiscovery,
  requireIssuer,
  UNKNOWN_FACTS,
} from './discovery'
import { type IdTokenRules, verifyIdToken, verifyIdTokenInHand } from './id-token'
import { introspect, readTokeninfo } from './inspect-token'
import { createKeySet, type KeySet, secretKeySet } from './key-set'
import { mergeClaims, normalizeProfile, readUserinfo, refuseOtherSubject, requireSubject } from './normalize-profile'
import { connectTo, type ProviderConnection, pushRequest, requestTokens } from './oauth2-request'
import type { CodeExchange, OAuthTokens, OAuthUser, ProviderClient, TokenProof } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { limitInFlight } from './provider-request'
import { algorithmNamed, CLOCK_SKEW_SECONDS, type IdTokenAlgorithm, typeOf } from './signed-token'
import { refusePossibleIdToken, requireAudience, type TokenVerifier } from './token-verifier'

export interface OidcClientOptions extends Omit<KeySetClientOptions, 'endpoints'> {
  /** Where the browser goes to log in. With `issuer` but no `authorizeUrl` and no `tokenUrl`, all URLs come from discovery. */
  authorizeUrl?: string
  /** The token endpoint, where a code is exchanged for tokens. */
  tokenUrl?: string
  /** The endpoint of the profile. Without this URL, doorward reads the profile from the verified id_token. */
  userinfoUrl?: string
  /** The introspection endpoint (RFC 7662), which names the client of an app's token. You cannot combine it with `tokeninfoUrl`. */
  introspectionUrl?: string
  /** Also names the client of an app's token, by GET with the query `access_token`. Not together with `introspectionUrl`. */
  tokeninfoUrl?: string
  /** Reads profile and client from the access token itself, instead of `userinfoUrl`, `introspectionUrl` or `tokeninfoUrl`. */
  tokenVerifier?: TokenVerifier
  /** The issuer, which must equal an id_token's `iss` exactly. */
  issuer?: string
  /** The URL of the provider's public keys. With this URL, doorward checks the signature of every id_token. */
  jwksUri?: string
  /** The endpoint for pushed authorization requests (RFC 9126). See `par`. */
  pushedAuthorizationUrl?: string
  /** The URL where the browser ends its session at the provider. */
  endSessionUrl?: string
}

type Claims = Record<string, unknown>

interface KnownProvider {
  endpoints: OidcClientOptions & { authorizeUrl: string; tokenUrl: string }
  facts: ProviderFacts
  connection: ProviderConnection
  keySet: KeySet | null
  idTokens: { keySet: KeySet | null; algorithms: readonly IdTokenAlgorithm[] }
}

/** A client for any OpenID Connect provider. Make a subclass to read other claims (`parseUser`). */
export class OidcClient implements ProviderClient {
  readonly providerName: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly redirectUri?: string
  readonly icon?: string
  readonly pkce: boolean
  readonly issuer?: string
  readonly extraAudiences: readonly string[]
  readonly reauthenticates: boolean
  readonly authorizeParams: Readonly<Record<string, string>>
  readonly loginHint: boolean
  readonly responseMode?: 'form_post'
  // Private (`#`), because printing a client must not print the client's secret.
  readonly #options: OidcClientOptions
  /** While a provider hangs, an attacker could send many invented tokens. A token with a cached key does not wait for the key set. */
  readonly #verifications = limitInFlight(
    () => new OAuthProviderUnavailableError({ cause: new Error('Too many tokens wait for the key set.') }),
    500,
  )
  readonly #httpClient: HttpClient
  readonly #discovery: BackgroundDiscovery<KnownProvider>
  #registeredAs: string
  #now: () => Date = () => new Date()
  /** Null: the tokens have no id_token. */
  readonly #verifiedClaims = new WeakMap<OAuthTokens, Claims | null>()

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: OidcClientOptions) {
    checkOidcOptions(new.target.name, options)
    this.providerName = options.providerName ?? 'oidc'
    this.clientId = options.clientId
    this.scopes = Object.freeze([...(options.scopes ?? ['openid', 'email', 'profile'])])
    if (options.redirectUri !== undefined) this.redirectUri = options.redirectUri
    if (options.icon !== undefined) this.icon = options.icon
    this.pkce = options.pkce ?? true
    this.reauthenticates = options.reauthenticates === true
    if (options.issuer !== undefined) this.issuer = options.issuer
    if (options.responseMode !== undefined) this.responseMode = options.responseMode
    this.extraAudiences = Object.freeze([...(options.extraAudiences ?? [])])
    this.authorizeParams = authorizeParamsOf(options)
    this.loginHint = options.loginHint === true
    this.#registeredAs = this.providerName
    this.#options = Object.freeze({ ...options })
    this.#httpClient = options.httpClient ?? createHttpClient()
    this.#discovery = createBackgroundDiscovery(() => this.#discover(), this.#named(options))
  }

  /**
   * Creates a client from the provider's discovery document (OpenID Connect Discovery 1.0). Call it on the class that you want. The client
   * always checks the signatures of id_tokens.
   *
   * @throws ConfigurationError when the document is of another issuer or names unusable endpoints
   * @throws OAuthProviderUnavailableError when the document cannot be read
   */
  static async discover<Client extends OidcClient = OidcClient>(
    this: new (
      options: OidcClientOptions,
    ) => Client,
    issuer: string,
    options: Omit<KeySetClientOptions, 'endpoints'>,
  ): Promise<Client> {
    checkClientOptions('OidcClient.discover', options, KEY_SET_OPTIONS)
    requireIssuer(issuer, options.providerName ?? 'oidc')
    // `this` is the class that `discover` is called on, so a host's subclass keeps its own `parseUser`.
    const client = new this({ ...options, issuer })
    await client.#discovery.find()
    return client
  }

  /** The URL where the browser goes to log in. Empty until the client discovers the URL. */
  get authorizeUrl(): string {
    return this.#discovery.found?.endpoints.authorizeUrl ?? ''
  }

  /** The token endpoint, where a code is exchanged for tokens. Empty until the client discovers the URL. */
  get tokenUrl(): string {
    return this.#discovery.found?.endpoints.tokenUrl ?? ''
  }

  /** Where the browser ends its session at the provider. Null: no such endpoint, or the client has not discovered it yet. */
  get endSessionUrl(): string | null {
    return this.#discovery.found?.endpoints.endSessionUrl ?? null
  }

  /** Waits until the endpoints are known. @throws OAuthProviderUnavailableError while the discovery document cannot be read */
  async prepare(): Promise<void> {
    await this.#known()
  }

  prepareInBackground(key: string, onFailure: (error: unknown) => void): void {
    this.#registeredAs = key
    this.#discovery.begin(onFailure)
  }

  /**
   * Pushes the authorization request if the option or the provider requires it. Returns the URL for the browser.
   *
   * @throws OAuthProviderUnavailableError when the provider does not accept the request
   */
  async pushAuthorizationRequest(authorizationUrl: string): Promise<string> {
    const { connection, endpoints, facts } = await this.#known()
    const { authorizeUrl, pushedAuthorizationUrl: url } = endpoints
    if (url === undefined || !(this.#options.par ?? facts.requiresPushedRequests)) return authorizationUrl
    return pushRequest(connection, { url, authorizeUrl, authorizationUrl })
  }

  /** Sets the clock for the times of tokens and the age of the key set. Default: the system's clock. */
  useClock(now: () => Date): void {
    this.#now = now
    this.#options.tokenVerifier?.useClock?.(now)
  }

  /** False: no source for a profile exists, so every login would fail. At its start, the router warns about the missing source. */
  get hasProfileSource(): boolean {
    const { userinfoUrl, tokenVerifier } = this.#discovery.found?.endpoints ?? this.#options
    return userinfoUrl !== undefined || tokenVerifier !== undefined || this.scopes.includes('openid')
  }

  /** True if the discovery document says that responses have `iss` (RFC 9207 section 3). */
  get requiresIssuerParameter(): boolean {
    return this.#discovery.found?.facts.sendsIssuerParameter === true
  }

  /** Exchanges the code for tokens. @throws OAuthError when the provider refuses, or the id_token is not for this login */
  async exchangeCode(input: CodeExchange): Promise<OAuthTokens> {
    if (this.clientId === '') throw new NotImplementedError(`${this.providerName}: clientId is empty; a code cannot be exchanged.`)
    const { connection } = await this.#known()
    const tokens = await requestTokens(connection, input, { idTokenSuffices: true })
    const claims = tokens.idToken === null ? null : await this.#verify(tokens.idToken, { nonce: input.nonce, isOwnExchange: true })
    this.#requireRecentSignIn(claims)
    this.#verifiedClaims.set(tokens, claims)
    return tokens
  }

  /**
   * Verifies that a token from an app was issued to `clientId` or one of `extraAudiences`. Uses the token verifier, else tokeninfo, else
   * introspection.
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthError (our credentials), OAuthProviderUnavailableError
   * @throws OAuthAudienceUnverifiableError when the client has none of the three sources, or `clientId` is empty
   */
  async verifyTokenAudience(accessToken: string): Promise<TokenProof> {
    const claims = await this.#inspect(accessToken)
    requireAudience(claims, [this.clientId, ...this.extraAudiences])
    if (this.#options.tokenVerifier) refusePossibleIdToken(typeOf(accessToken), claims)
    return { claims }
  }

  /**
   * Verifies an app's id_token. The token must be of this provider, and for `clientId` or one of `extraAudiences`. The token must be at
   * most 10 minutes old, and have this nonce. `fetchUser` reads the profile of the returned tokens only from the id_token.
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthProviderUnavailableError (the keys cannot be read)
   * @throws OAuthAudienceUnverifiableError when `clientId`, `issuer` or `jwksUri` is missing
   */
  async verifyIdToken(idToken: string, nonce: string | null): Promise<OAuthTokens> {
    const known = await this.#known()
    const { keySet, algorithms } = known.idTokens
    const rules = this.#rules(known)
    // If the client accepts an empty issuer, its check of the issuer is useless.
    if (!keySet || this.clientId === '' || rules.acceptsIssuer('', {})) {
      throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
    }
    const accepted = [this.clientId, ...this.extraAudiences]
    const inHand = { ...rules, keySet, accepted, algorithms, nonce }
    const claims = await this.#verifications.run('token', () => verifyIdTokenInHand(idToken, inHand))
    const none = { accessToken: '', tokenType: 'bearer', refreshToken: null, expiresIn: null, scope: null, raw: {} }
    const tokens: OAuthTokens = { ...none, idToken, proof: { claims } }
    this.#verifiedClaims.set(tokens, claims)
    return tokens
  }

  /**
   * Reads the profile.
   *
   * @throws OAuthError when the provider refuses, or the profile and the id_token have different subjects
   * @throws OAuthTokenRejectedError if a token from an app belongs to another subject than the profile
   * @throws NotImplementedError when no source for a profile exists
   */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const proven = await this.#provenClaims(tokens)
    const profile = await this.#profileClaims(tokens, proven)
    // Rejects userinfo of another subject (OpenID Connect Core section 5.3.2).
    const subject = requireSubject(this.providerName, profile['sub'])
    if (proven && requireSubject(this.providerName, proven['sub']) !== subject) {
      throw unusableIdentity(this.providerName, 'sub: the profile is of another subject than the id_token; check userinfoUrl')
    }
    refuseOtherSubject(tokens.proof, subject)
    const claims = proven && !this.#options.tokenVerifier ? mergeClaims(proven, profile) : profile
    const user = normalizeProfile(this.providerName, { ...this.parseUser(claims, tokens), sid: proven?.['sid'] })
    return this.#options.trustEmail === false ? { ...user, emailVerified: null } : user
  }

  /** When the person signed in at the provider, in seconds since 1970 (the verified `auth_time`). Null: no `auth_time`. */
  authTimeOf(tokens: OAuthTokens): number | null {
    const authTime = this.#verifiedClaims.get(tokens)?.['auth_time']
    return typeof authTime === 'number' && Number.isFinite(authTime) ? authTime : null
  }

  /** Turns verified claims into an identity. Override this method to read other claims. The client normalises the result again. */
  protected parseUser(claims: Record<string, unknown>, _tokens: OAuthTokens): OAuthUser {
    const { sub, email, email_verified: emailVerified, name, picture } = claims
    return normalizeProfile(this.providerName, { subject: sub, email, emailVerified, name, picture, raw: claims })
  }

  /** Returns true if this `iss` of an id_token belongs to this provider. */
  protected acceptsIssuer(issuer: string, _claims: Record<string, unknown>): boolean {
    return this.#options.issuer === undefined || issuer === this.#options.issuer
  }

  /** Override it for a provider that needs a new secret for each request. Null: use the secret of the options. */
  protected freshSecret(_now: Date): string | null {
    return null
  }

  /** Null: the client must discover the endpoints. */
  #named(options: OidcClientOptions): KnownProvider | null {
    const { authorizeUrl, tokenUrl } = options
    return authorizeUrl === undefined || tokenUrl === undefined
      ? null
      : this.#connect({ ...options, authorizeUrl, tokenUrl }, UNKNOWN_FACTS)
  }

  async #discover(): Promise<KnownProvider> {
    const { issuer = '', idTokenAlgorithms, clientAuthentication, clientSecret = '' } = this.#options
    const needs = {
      idTokens: this.scopes.includes('openid') && idTokenAlgorithms === undefined,
      secretMethod: clientAuthentication === undefined && clientSecret !== '',
    }
    const { endpoints, facts } = await readDiscovery(issuer, this.#httpClient, { provider: this.#registeredAs, needs })
    const given = Object.fromEntries(Object.entries(this.#options).filter(([, value]) => value !== undefined))
    const { clientId } = this.#options
    const authentication = authenticationOf(this.#options, endpoints)
    if (authentication.clientAuthentication === 'none') requirePkce(this.constructor.name, this)
    return this.#connect({ ...endpoints, ...authentication, ...given, clientId }, facts)
  }

  #connect(endpoints: KnownProvider['endpoints'], facts: ProviderFacts): KnownProvider {
    const { clientId, clientSecret = '', issuer, tokenUrl, jwksUri, staleIfErrorSeconds } = endpoints
    const httpClient = this.#httpClient
    const now = () => this.#now()
    const context = { owner: this.constructor.name, audience: issuer ?? tokenUrl, now }
    const authenticate = createAuthenticate(endpoints, { ...context, freshSecret: (at) => this.freshSecret(at) })
    const connection = connectTo({ providerName: this.providerName, clientId, clientSecret, authenticate, tokenUrl, httpClient })
    const stale = staleIfErrorSeconds === undefined ? {} : { staleIfErrorSeconds }
    const keySet = jwksUri === undefined ? null : createKeySet({ jwksUri, httpClient, now, ...stale })
    const named = this.#options.idTokenAlgorithms?.map((name) => algorithmNamed(name) as IdTokenAlgorithm)
    const algorithms: readonly IdTokenAlgorithm[] = named ?? facts.idTokenAlgorithms
    const idTokens = { keySet: algorithms.includes('HS256') ? secretKeySet(clientSecret) : keySet, algorithms }
    return { endpoints, facts, connection, keySet, idTokens }
  }

  /** An unusable document counts as unavailable, because the provider can correct it later. */
  async #known(): Promise<KnownProvider> {
    try {
      return await this.#discovery.find()
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      throw new OAuthProviderUnavailableError({ cause: withOwnMessage(new Error(error.message)) })
    }
  }

  async #verify(idToken: string, expected: Pick<IdTokenRules, 'nonce' | 'isOwnExchange'>): Promise<Claims> {
    const known = await this.#known()
    return verifyIdToken(idToken, { ...this.#rules(known), ...known.idTokens, ...expected, provider: this.providerName })
  }

  #rules({ keySet }: KnownProvider) {
    const acceptsIssuer = (issuer: string, claims: Claims) => this.acceptsIssuer(issuer, claims)
    return { clientId: this.clientId, acceptsIssuer, keySet, now: this.#now() }
  }

  /** OpenID Connect Core section 3.1.3.7, rule 13. Allows a clock difference of `CLOCK_SKEW_SECONDS`. */
  #requireRecentSignIn(claims: Claims | null): void {
    const { maxAgeSeconds } = this.#options
    if (maxAgeSeconds === undefined) return
    const authTime = claims?.['auth_time']
    const { providerName } = this
    if (typeof authTime !== 'number' || !Number.isFinite(authTime))
      throw unusableIdentity(
        providerName,
        'auth_time is missing, and maxAgeSeconds needs it: have the provider send it, or leave maxAgeSeconds out',
      )
    const age = Math.floor(this.#now().getTime() / 1000 - authTime)
    if (age > maxAgeSeconds + CLOCK_SKEW_SECONDS)
      throw unusableIdentity(providerName, `auth_time is ${age} s ago, longer than maxAgeSeconds: the provider ignored max_age`)
  }

  async #inspect(accessToken: string): Promise<Claims> {
    const { tokenVerifier } = this.#options
    if (this.clientId !== '') {
      if (tokenVerifier) return this.#verifications.run('token', () => tokenVerifier.verify(accessToken))
      const { connection, endpoints } = await this.#known()
      const { introspectionUrl, tokeninfoUrl } = endpoints
      // If the host sets `tokeninfoUrl` and discovery finds an introspection endpoint, the host's option wins.
      if (tokeninfoUrl !== undefined) return readTokeninfo(connection, tokeninfoUrl, accessToken, this.#now())
      if (introspectionUrl !== undefined) return introspect(connection, introspectionUrl, accessToken, this.#now())
    }
    throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
  }

  /** If the tokens did not come from `exchangeCode`, their origin is unknown, and the id_token needs a verified signature. */
  async #provenClaims(tokens: OAuthTokens): Promise<Claims | null> {
    const known = this.#verifiedClaims.get(tokens)
    if (known !== undefined || tokens.idToken === null) return known ?? null
    const { idTokens } = await this.#known()
    if (!idTokens.keySet) throw unusableIdentity(this.providerName, 'an id_token of unknown origin, and no jwksUri to check it')
    return this.#verify(tokens.idToken, { nonce: undefined, isOwnExchange: false })
  }

  async #profileClaims(tokens: OAuthTokens, proven: Claims | null): Promise<Claims> {
    const { tokenVerifier } = this.#options
    if (proven && tokens.accessToken === '') return proven // without an access token, userinfo cannot be read
    if (tokenVerifier) return this.#claimsOfAccessToken(tokenVerifier, tokens)
    const known = await this.#known()
    const { userinfoUrl } = known.endpoints
    if (userinfoUrl !== undefined) return readUserinfo(known.connection, userinfoUrl, tokens, this.#rules(known))
    if (proven) return proven
    throw new NotImplementedError(`${this.providerName}: no userinfoUrl, no tokenVerifier and no id_token to read the profile from.`)
  }

  /** After a code exchange, every failure becomes the same 502: the code is already used, so a retry cannot help. */
  async #claimsOfAccessToken(tokenVerifier: TokenVerifier, tokens: OAuthTokens): Promise<Claims> {
    try {
      return await this.#verifications.run(tokens.proof ? 'token' : 'callback', () => tokenVerifier.verify(tokens.accessToken))
    } catch (error) {
      if (!(error instanceof AppError) || !this.#verifiedClaims.has(tokens)) throw error
      throw new OAuthError({ details: { provider: this.providerName, status: null, body: null }, cause: error })
    }
  }
}

/** An empty secret means `none`, because the discovered methods need a secret. */
function authenticationOf(
  { clientSecret, clientAuthentication }: ClientCredentials,
  discovered: DiscoveredEndpoints,
): { clientAuthentication: ClientAuthentication } {
  return { clientAuthentication: clientAuthentication ?? (clientSecret === '' ? 'none' : discovered.clientAuthentication) }
}

const OPTIONAL_ADDRESSES = [
  'userinfoUrl',
  'introspectionUrl',
  'tokeninfoUrl',
  'jwksUri',
  'issuer',
  'pushedAuthorizationUrl',
  'endSessionUrl',
] as const

const OIDC_OPTIONS = [
  ...KEY_SET_OPTIONS,
  'authorizeUrl',
  'tokenUrl',
  'userinfoUrl',
  'introspectionUrl',
  'tokeninfoUrl',
  'tokenVerifier',
  'issuer',
  'jwksUri',
  'pushedAuthorizationUrl',
  'endSessionUrl',
]

function checkOidcOptions(owner: string, options: OidcClientOptions): void {
  checkClientOptions(owner, options, OIDC_OPTIONS)
  checkKeySetOptions(owner, options)
  const { authorizeUrl, tokenUrl, issuer, par, pushedAuthorizationUrl } = options
  const isNamed = issuer === undefined || authorizeUrl !== undefined || tokenUrl !== undefined
  if (isNamed) for (const name of ['authorizeUrl', 'tokenUrl'] as const) requireEndpoint(owner, name, options[name])
  for (const name of OPTIONAL_ADDRESSES) if (options[name] !== undefined) requireEndpoint(owner, name, options[name])
  if (isNamed && par === true && pushedAuthorizationUrl === undefined)
    throw new ConfigurationError(`${owner}: par needs pushedAuthorizationUrl, or only an issuer, so that doorward discovers the URL.`)
  if (options.introspectionUrl !== undefined && options.tokeninfoUrl !== undefined) {
    throw new ConfigurationError(`${owner}: pass introspectionUrl or tokeninfoUrl, not both.`)
  }
  if (options.tokenVerifier !== undefined && typeof options.tokenVerifier?.verify !== 'function') {
    throw new ConfigurationError(`${owner}: tokenVerifier must be what createTokenVerifier() returns.`)
  }
}
