import {
  AppError,
  ConfigurationError,
  NotImplementedError,
  OAuthAudienceUnverifiableError,
  OAuthError,
  OAuthProviderUnavailableError,
} from '../errors'
import { createHttpClient, type HttpClient } from '../http-client'
import { withOwnMessage } from '../logger'
import { refusePossibleIdToken } from './access-token-kind'
import { requireAudience } from './audience'
import { type BackgroundDiscovery, createBackgroundDiscovery } from './background-discovery'
import { type ClientAuthentication, type ClientCredentials, createAuthenticate } from './client-authentication'
import {
  authorizeParamsOf,
  checkClientOptions,
  checkKeySetOptions,
  KEY_SET_OPTIONS,
  type KeySetClientOptions,
  requireEndpoint,
} from './client-options'
import { type DiscoveredEndpoints, type ProviderFacts, readDiscovery, requireIssuer, UNKNOWN_FACTS } from './discovery'
import { type IdTokenRules, verifyIdToken } from './id-token'
import { verifyIdTokenInHand } from './id-token-in-hand'
import { limitInFlight } from './in-flight'
import { introspect, readTokeninfo } from './inspect-token'
import { createKeySet, type KeySet } from './key-set'
import { mergeClaims } from './merge-claims'
import { normalizeProfile, requireSubject } from './normalize-profile'
import { connectTo, type ProviderConnection, requestTokens } from './oauth2-request'
import { refuseOtherSubject } from './proven-subject'
import type { CodeExchange, OAuthTokens, OAuthUser, ProviderClient, TokenProof } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { pushRequest } from './pushed-request'
import { CLOCK_SKEW_SECONDS, typeOf } from './signed-token'
import type { TokenVerifier } from './token-verifier'
import { readUserinfo } from './userinfo'

export interface OidcClientOptions extends Omit<KeySetClientOptions, 'endpoints'> {
  /** Where the browser goes to log in. With `issuer` and without `authorizeUrl` and `tokenUrl` the provider's own description names all. */
  authorizeUrl?: string
  /** Where a code is exchanged for tokens. */
  tokenUrl?: string
  /** Without it the profile is read from the verified id_token. */
  userinfoUrl?: string
  /** RFC 7662: asked whom a token in hand was issued to. Not together with `tokeninfoUrl`. */
  introspectionUrl?: string
  /** The same, called with GET and query `access_token`. Not together with `introspectionUrl`. */
  tokeninfoUrl?: string
  /** Reads the profile, and whom a token in hand was issued to, from the access token itself: no call to any of the above. */
  tokenVerifier?: TokenVerifier
  /** Compared with an id_token's `iss` exactly. */
  issuer?: string
  /** The provider's keys; with it the signature of every id_token is checked. */
  jwksUri?: string
  /** Where a request is pushed (RFC 9126), with `par: true`. */
  pushedAuthorizationUrl?: string
  /** Where the browser ends its session at the provider. */
  endSessionUrl?: string
}

type Claims = Record<string, unknown>

/** What a client without named endpoints waits for. */
interface KnownProvider {
  endpoints: OidcClientOptions & { authorizeUrl: string; tokenUrl: string }
  facts: ProviderFacts
  connection: ProviderConnection
  keySet: KeySet | null
}

/** Any OpenID Connect provider. Subclass it to read other claims (`parseUser`). */
export class OidcClient implements ProviderClient {
  readonly providerName: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly redirectUri?: string
  readonly pkce: boolean
  readonly issuer?: string
  readonly extraAudiences: readonly string[]
  readonly reauthenticates: boolean
  readonly authorizeParams: Readonly<Record<string, string>>
  readonly loginHint: boolean
  readonly responseMode?: 'form_post'
  // Private at run time too: printing a client must not print its secret.
  readonly #options: OidcClientOptions
  /**
   * Anybody can make up a token that waits for the key set: few enough may that a provider that hangs is no load. With its key
   * at hand a token waits for nothing, and holds no place.
   */
  readonly #verifications = limitInFlight(
    () => new OAuthProviderUnavailableError({ cause: new Error('Too many tokens wait for the key set.') }),
    500,
  )
  readonly #httpClient: HttpClient
  readonly #discovery: BackgroundDiscovery<KnownProvider>
  #registeredAs: string
  #now: () => Date = () => new Date()
  /** What the id_token of these very tokens proved; null: none came back. */
  readonly #verifiedClaims = new WeakMap<OAuthTokens, Claims | null>()

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: OidcClientOptions) {
    checkOidcOptions(new.target.name, options)
    this.providerName = options.providerName ?? 'oidc'
    this.clientId = options.clientId
    this.scopes = Object.freeze([...(options.scopes ?? ['openid', 'email', 'profile'])])
    if (options.redirectUri !== undefined) this.redirectUri = options.redirectUri
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
   * A client made from the provider's own description (OpenID Connect Discovery 1.0), called on the class it shall be of.
   * Signatures of id_tokens are always checked.
   *
   * @throws ConfigurationError when the description is of another issuer or names unusable endpoints
   * @throws OAuthProviderUnavailableError when it cannot be read
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
    // `this` is the subclass the host wrote: its parseUser must not be lost.
    const client = new this({ ...options, issuer })
    await client.#discovery.find()
    return client
  }

  /** Where the browser goes to log in; empty until it is discovered. */
  get authorizeUrl(): string {
    return this.#discovery.found?.endpoints.authorizeUrl ?? ''
  }

  /** Where a code is exchanged for tokens; empty until it is discovered. */
  get tokenUrl(): string {
    return this.#discovery.found?.endpoints.tokenUrl ?? ''
  }

  /** Where the browser ends its session at the provider; null: there is no such place, or it is not discovered yet. */
  get endSessionUrl(): string | null {
    return this.#discovery.found?.endpoints.endSessionUrl ?? null
  }

  /** @throws OAuthProviderUnavailableError while the provider's description cannot be read */
  async prepare(): Promise<void> {
    await this.#known()
  }

  prepareInBackground(key: string, onFailure: (error: unknown) => void): void {
    this.#registeredAs = key
    this.#discovery.begin(onFailure)
  }

  /** @throws OAuthProviderUnavailableError when the provider does not take the request */
  async pushAuthorizationRequest(authorizationUrl: string): Promise<string> {
    const { connection, endpoints, facts } = await this.#known()
    const { authorizeUrl, pushedAuthorizationUrl: url } = endpoints
    if (url === undefined || !(this.#options.par ?? facts.requiresPushedRequests)) return authorizationUrl
    return pushRequest(connection, { url, authorizeUrl, authorizationUrl })
  }

  /** From now on instants of tokens and the age of the key set are checked by this clock. Default: the system's. */
  useClock(now: () => Date): void {
    this.#now = now
    this.#options.tokenVerifier?.useClock?.(now)
  }

  /** False: every login would be refused, for want of anything to read a profile from. Boot warns of it. */
  get hasProfileSource(): boolean {
    const { userinfoUrl, tokenVerifier } = this.#discovery.found?.endpoints ?? this.#options
    return userinfoUrl !== undefined || tokenVerifier !== undefined || this.scopes.includes('openid')
  }

  /** RFC 9207 section 3: what a discovered description says. */
  get requiresIssuerParameter(): boolean {
    return this.#discovery.found?.facts.sendsIssuerParameter === true
  }

  /** @throws OAuthError when the provider refuses, or an id_token that came back is not for this login */
  async exchangeCode(input: CodeExchange): Promise<OAuthTokens> {
    if (this.clientId === '') throw new NotImplementedError(`${this.providerName}: clientId is empty; a code cannot be exchanged.`)
    const { connection } = await this.#known()
    const tokens = await requestTokens(connection, input)
    const claims = tokens.idToken === null ? null : await this.#verify(tokens.idToken, { nonce: input.nonce, isOwnExchange: true })
    this.#requireRecentSignIn(claims)
    this.#verifiedClaims.set(tokens, claims)
    return tokens
  }

  /**
   * Whether a token in hand was issued to `clientId` or one of `extraAudiences`, by the token verifier, else introspection,
   * else tokeninfo.
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthError (our credentials), OAuthProviderUnavailableError
   * @throws OAuthAudienceUnverifiableError when there is none of the three, or `clientId` is empty
   */
  async verifyTokenAudience(accessToken: string): Promise<TokenProof> {
    const claims = await this.#inspect(accessToken)
    requireAudience(claims, [this.clientId, ...this.extraAudiences])
    if (this.#options.tokenVerifier) refusePossibleIdToken(typeOf(accessToken), claims)
    return { claims }
  }

  /**
   * Whether an app's id_token is of this provider, for `clientId` or one of `extraAudiences`, of the last 10 minutes, and has this nonce. The
   * profile of the tokens it resolves with is read from the id_token alone.
   *
   * @throws OAuthTokenAudienceMismatchError, OAuthTokenRejectedError, OAuthProviderUnavailableError (the keys cannot be read)
   * @throws OAuthAudienceUnverifiableError when `clientId`, `issuer` or `jwksUri` is missing
   */
  async verifyIdToken(idToken: string, nonce: string | null): Promise<OAuthTokens> {
    const known = await this.#known()
    const { keySet, ...rules } = this.#rules(known)
    // Who accepts an empty issuer accepts any.
    if (!keySet || this.clientId === '' || rules.acceptsIssuer('', {})) {
      throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
    }
    const accepted = [this.clientId, ...this.extraAudiences]
    const inHand = { ...rules, keySet, accepted, algorithms: known.facts.idTokenAlgorithms, nonce }
    const claims = await this.#verifications.run('token', () => verifyIdTokenInHand(idToken, inHand))
    const none = { accessToken: '', tokenType: 'bearer', refreshToken: null, expiresIn: null, scope: null, raw: {} }
    const tokens: OAuthTokens = { ...none, idToken, proof: { claims } }
    this.#verifiedClaims.set(tokens, claims)
    return tokens
  }

  /**
   * @throws OAuthError when the provider refuses, or its answer is about somebody else than the id_token
   * @throws OAuthTokenRejectedError for a token in hand that is not the profile's
   * @throws NotImplementedError when there is nothing to read a profile from
   */
  async fetchUser(tokens: OAuthTokens): Promise<OAuthUser> {
    const proven = await this.#provenClaims(tokens)
    const profile = await this.#profileClaims(tokens, proven)
    // OpenID Connect Core section 5.3.2: userinfo of another subject must not be used.
    const subject = requireSubject(this.providerName, profile['sub'])
    if (proven && requireSubject(this.providerName, proven['sub']) !== subject) {
      throw unusableIdentity(this.providerName, 'sub: the profile is of another subject than the id_token; check userinfoUrl')
    }
    refuseOtherSubject(tokens.proof, subject)
    const claims = proven && !this.#options.tokenVerifier ? mergeClaims(proven, profile) : profile
    const user = normalizeProfile(this.providerName, this.parseUser(claims, tokens))
    return this.#options.trustEmail === false ? { ...user, emailVerified: null } : user
  }

  /** When the person signed in at the provider, by the id_token that came with these tokens and was verified; null: it does not say. */
  authTimeOf(tokens: OAuthTokens): number | null {
    const authTime = this.#verifiedClaims.get(tokens)?.['auth_time']
    return typeof authTime === 'number' && Number.isFinite(authTime) ? authTime : null
  }

  /** Verified claims to an identity. Override it to read other claims; what it returns is normalised again. */
  protected parseUser(claims: Record<string, unknown>, _tokens: OAuthTokens): OAuthUser {
    const { sub, email, email_verified: emailVerified, name, picture } = claims
    return normalizeProfile(this.providerName, { subject: sub, email, emailVerified, name, picture, raw: claims })
  }

  /** Which `iss` of an id_token is this provider's. */
  protected acceptsIssuer(issuer: string, _claims: Record<string, unknown>): boolean {
    return this.#options.issuer === undefined || issuer === this.#options.issuer
  }

  /** Override it for a provider whose secret is made anew for each request. Null: the secret of the options. */
  protected freshSecret(_now: Date): string | null {
    return null
  }

  /** The provider as the host named it; null: its endpoints are to be discovered. */
  #named(options: OidcClientOptions): KnownProvider | null {
    const { authorizeUrl, tokenUrl } = options
    return authorizeUrl === undefined || tokenUrl === undefined
      ? null
      : this.#connect({ ...options, authorizeUrl, tokenUrl }, UNKNOWN_FACTS)
  }

  /** What the host names wins over the description. */
  async #discover(): Promise<KnownProvider> {
    const { issuer = '' } = this.#options
    const { endpoints, facts } = await readDiscovery(issuer, this.#httpClient, this.#registeredAs)
    const given = Object.fromEntries(Object.entries(this.#options).filter(([, value]) => value !== undefined))
    const { clientId } = this.#options
    return this.#connect({ ...endpoints, ...authenticationOf(this.#options, endpoints), ...given, clientId }, facts)
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
    return { endpoints, facts, connection, keySet }
  }

  /** A description that cannot be used may be mended at the provider: until then nobody can sign in, as while there is none. */
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
    const { idTokenAlgorithms: algorithms } = known.facts
    return verifyIdToken(idToken, { ...this.#rules(known), ...expected, provider: this.providerName, algorithms })
  }

  #rules({ keySet }: KnownProvider) {
    const acceptsIssuer = (issuer: string, claims: Claims) => this.acceptsIssuer(issuer, claims)
    return { clientId: this.clientId, acceptsIssuer, keySet, now: this.#now() }
  }

  /** OpenID Connect Core section 3.1.3.7, rule 13. The provider's clock may be behind ours by as much as it may be in an id_token. */
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
      throw unusableIdentity(providerName, `auth_time is ${age} s ago, longer than maxAgeSeconds: the provider did not heed max_age`)
  }

  async #inspect(accessToken: string): Promise<Claims> {
    const { tokenVerifier } = this.#options
    if (this.clientId !== '') {
      if (tokenVerifier) return this.#verifications.run('token', () => tokenVerifier.verify(accessToken))
      const { connection, endpoints } = await this.#known()
      const { introspectionUrl, tokeninfoUrl } = endpoints
      // Both only where the host named tokeninfo and the description has introspection: the host's word counts.
      if (tokeninfoUrl !== undefined) return readTokeninfo(connection, tokeninfoUrl, accessToken, this.#now())
      if (introspectionUrl !== undefined) return introspect(connection, introspectionUrl, accessToken, this.#now())
    }
    throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
  }

  /** The origin of tokens that did not come from `exchangeCode` is unknown, so they need a verified signature. */
  async #provenClaims(tokens: OAuthTokens): Promise<Claims | null> {
    const known = this.#verifiedClaims.get(tokens)
    if (known !== undefined || tokens.idToken === null) return known ?? null
    const { keySet } = await this.#known()
    if (!keySet) throw unusableIdentity(this.providerName, 'an id_token of unknown origin, and no jwksUri to check it')
    return this.#verify(tokens.idToken, { nonce: undefined, isOwnExchange: false })
  }

  async #profileClaims(tokens: OAuthTokens, proven: Claims | null): Promise<Claims> {
    const { tokenVerifier } = this.#options
    if (proven && tokens.accessToken === '') return proven // an id_token in hand: there is nothing to ask with
    if (tokenVerifier) return this.#claimsOfAccessToken(tokenVerifier, tokens)
    const known = await this.#known()
    const { userinfoUrl } = known.endpoints
    if (userinfoUrl !== undefined) return readUserinfo(known.connection, userinfoUrl, tokens, this.#rules(known))
    if (proven) return proven
    throw new NotImplementedError(`${this.providerName}: no userinfoUrl, no tokenVerifier and no id_token to read the profile from.`)
  }

  /** After a code exchange every failure is the same 502: the code is burnt, so nothing can be retried. */
  async #claimsOfAccessToken(tokenVerifier: TokenVerifier, tokens: OAuthTokens): Promise<Claims> {
    try {
      return await this.#verifications.run(tokens.proof ? 'token' : 'callback', () => tokenVerifier.verify(tokens.accessToken))
    } catch (error) {
      if (!(error instanceof AppError) || !this.#verifiedClaims.has(tokens)) throw error
      throw new OAuthError({ details: { provider: this.providerName, status: null, body: null }, cause: error })
    }
  }
}

/** What the host says; a client without a secret has nothing for a header. */
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
    throw new ConfigurationError(`${owner}: par needs pushedAuthorizationUrl, or an issuer alone, so that it is discovered.`)
  if (options.introspectionUrl !== undefined && options.tokeninfoUrl !== undefined) {
    throw new ConfigurationError(`${owner}: pass introspectionUrl or tokeninfoUrl, not both.`)
  }
  if (options.tokenVerifier !== undefined && typeof options.tokenVerifier?.verify !== 'function') {
    throw new ConfigurationError(`${owner}: tokenVerifier must be what createTokenVerifier() returns.`)
  }
}
