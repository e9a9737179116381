import {
  AppError,
  ConfigurationError,
  NotImplementedError,
  OAuthAudienceUnverifiableError,
  OAuthError,
  OAuthProviderUnavailableError,
} from '../errors'
import { createHttpClient } from '../http-client'
import { refusePossibleIdToken } from './access-token-kind'
import { requireAudience } from './audience'
import { type ClientAuthentication, type ClientCredentials, createAuthenticate } from './client-authentication'
import { checkClientOptions, KEY_SET_OPTIONS, type KeySetClientOptions, requireEndpoint, requireStaleSeconds } from './client-options'
import { type DiscoveredEndpoints, readDiscovery } from './discovery'
import { type IdTokenRules, verifyIdToken } from './id-token'
import { verifyIdTokenInHand } from './id-token-in-hand'
import { limitInFlight } from './in-flight'
import { introspect, readTokeninfo } from './inspect-token'
import { SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from './jws'
import { createKeySet, type KeySet } from './key-set'
import { mergeClaims } from './merge-claims'
import { normalizeProfile, requireSubject } from './normalize-profile'
import { connectTo, type ProviderConnection, requestTokens } from './oauth2-request'
import { refuseOtherSubject } from './proven-subject'
import type { CodeExchange, OAuthTokens, OAuthUser, ProviderClient, TokenProof } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { typeOf } from './signed-token'
import type { TokenVerifier } from './token-verifier'
import { readUserinfo } from './userinfo'

export interface OidcClientOptions extends Omit<KeySetClientOptions, 'endpoints'> {
  /** Where the browser goes to log in. */
  authorizeUrl: string
  /** Where a code is exchanged for tokens. */
  tokenUrl: string
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
}

type Claims = Record<string, unknown>

/** Any OpenID Connect provider. Subclass it to read other claims (`parseUser`). */
export class OidcClient implements ProviderClient {
  readonly providerName: string
  readonly clientId: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly scopes: readonly string[]
  readonly redirectUri?: string
  readonly pkce: boolean
  readonly issuer?: string
  readonly extraAudiences: readonly string[]
  readonly reauthenticates: boolean
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
  readonly #connection: ProviderConnection
  readonly #keySet: KeySet | null
  #requiresIssuerParameter = false
  #idTokenAlgorithms: readonly SignatureAlgorithm[] = SIGNATURE_ALGORITHMS
  #now: () => Date = () => new Date()
  /** What the id_token of these very tokens proved; null: none came back. */
  readonly #verifiedClaims = new WeakMap<OAuthTokens, Claims | null>()

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: OidcClientOptions) {
    checkOidcOptions(new.target.name, options)
    this.providerName = options.providerName ?? 'oidc'
    this.clientId = options.clientId
    this.authorizeUrl = options.authorizeUrl
    this.tokenUrl = options.tokenUrl
    this.scopes = Object.freeze([...(options.scopes ?? ['openid', 'email', 'profile'])])
    if (options.redirectUri !== undefined) this.redirectUri = options.redirectUri
    this.pkce = options.pkce ?? true
    this.reauthenticates = options.reauthenticates === true
    if (options.issuer !== undefined) this.issuer = options.issuer
    this.extraAudiences = Object.freeze([...(options.extraAudiences ?? [])])
    this.#options = Object.freeze({ ...options })
    this.#connection = this.#connect(options)
    this.#keySet = this.#keySetOf(options)
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
    const httpClient = options.httpClient ?? createHttpClient()
    // `this` is the subclass the host wrote: its parseUser must not be lost.
    const { endpoints, sendsIssuerParameter, idTokenAlgorithms } = await readDiscovery(issuer, httpClient, options.providerName ?? 'oidc')
    const client = new this({ ...options, httpClient, ...endpoints, ...authenticationOf(options, endpoints) })
    client.#requiresIssuerParameter = sendsIssuerParameter
    client.#idTokenAlgorithms = idTokenAlgorithms
    return client
  }

  /** From now on instants of tokens and the age of the key set are checked by this clock. Default: the system's. */
  useClock(now: () => Date): void {
    this.#now = now
    this.#options.tokenVerifier?.useClock?.(now)
  }

  /** False: every login would be refused, for want of anything to read a profile from. Boot warns of it. */
  get hasProfileSource(): boolean {
    const { userinfoUrl, tokenVerifier } = this.#options
    return userinfoUrl !== undefined || tokenVerifier !== undefined || this.scopes.includes('openid')
  }

  /** RFC 9207 section 3: what a discovered description says. */
  get requiresIssuerParameter(): boolean {
    return this.#requiresIssuerParameter
  }

  /** @throws OAuthError when the provider refuses, or an id_token that came back is not for this login */
  async exchangeCode(input: CodeExchange): Promise<OAuthTokens> {
    if (this.clientId === '') throw new NotImplementedError(`${this.providerName}: clientId is empty; a code cannot be exchanged.`)
    const tokens = await requestTokens(this.#connection, input)
    const claims = tokens.idToken === null ? null : await this.#verify(tokens.idToken, { nonce: input.nonce, isOwnExchange: true })
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
    const { keySet, ...rules } = this.#rules()
    // Who accepts an empty issuer accepts any.
    if (!keySet || this.clientId === '' || rules.acceptsIssuer('', {})) {
      throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
    }
    const accepted = [this.clientId, ...this.extraAudiences]
    const inHand = { ...rules, keySet, accepted, algorithms: this.#idTokenAlgorithms, nonce }
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

  #connect(options: OidcClientOptions): ProviderConnection {
    const { clientId, clientSecret = '', issuer, tokenUrl, httpClient = createHttpClient() } = options
    const authenticate = createAuthenticate(options, { owner: this.constructor.name, audience: issuer ?? tokenUrl, now: () => this.#now() })
    return connectTo({ providerName: this.providerName, clientId, clientSecret, authenticate, tokenUrl, httpClient })
  }

  #keySetOf({ jwksUri, staleIfErrorSeconds }: OidcClientOptions): KeySet | null {
    if (jwksUri === undefined) return null
    const stale = staleIfErrorSeconds === undefined ? {} : { staleIfErrorSeconds }
    return createKeySet({ jwksUri, httpClient: this.#connection.httpClient, now: () => this.#now(), ...stale })
  }

  #verify(idToken: string, expected: Pick<IdTokenRules, 'nonce' | 'isOwnExchange'>): Promise<Claims> {
    return verifyIdToken(idToken, { ...this.#rules(), ...expected, provider: this.providerName, algorithms: this.#idTokenAlgorithms })
  }

  #rules() {
    const acceptsIssuer = (issuer: string, claims: Claims) => this.acceptsIssuer(issuer, claims)
    return { clientId: this.clientId, acceptsIssuer, keySet: this.#keySet, now: this.#now() }
  }

  async #inspect(accessToken: string): Promise<Claims> {
    const { tokenVerifier, introspectionUrl, tokeninfoUrl } = this.#options
    if (this.clientId !== '') {
      if (tokenVerifier) return this.#verifications.run('token', () => tokenVerifier.verify(accessToken))
      if (introspectionUrl !== undefined) return introspect(this.#connection, introspectionUrl, accessToken, this.#now())
      if (tokeninfoUrl !== undefined) return readTokeninfo(this.#connection, tokeninfoUrl, accessToken, this.#now())
    }
    throw new OAuthAudienceUnverifiableError({ details: { provider: this.providerName } })
  }

  /** Tokens that did not come from `exchangeCode` prove nothing by where they came from: only a signature helps. */
  async #provenClaims(tokens: OAuthTokens): Promise<Claims | null> {
    const known = this.#verifiedClaims.get(tokens)
    if (known !== undefined || tokens.idToken === null) return known ?? null
    if (!this.#keySet) throw unusableIdentity(this.providerName, 'an id_token of unknown origin, and no jwksUri to check it')
    return this.#verify(tokens.idToken, { nonce: undefined, isOwnExchange: false })
  }

  async #profileClaims(tokens: OAuthTokens, proven: Claims | null): Promise<Claims> {
    const { tokenVerifier, userinfoUrl } = this.#options
    if (proven && tokens.accessToken === '') return proven // an id_token in hand: there is nothing to ask with
    if (tokenVerifier) return this.#claimsOfAccessToken(tokenVerifier, tokens)
    if (userinfoUrl !== undefined) return readUserinfo(this.#connection, userinfoUrl, tokens, this.#rules())
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
]

function checkOidcOptions(owner: string, options: OidcClientOptions): void {
  checkClientOptions(owner, options, OIDC_OPTIONS)
  requireStaleSeconds(owner, options.staleIfErrorSeconds)
  for (const name of ['authorizeUrl', 'tokenUrl'] as const) requireEndpoint(owner, name, options[name])
  for (const name of ['userinfoUrl', 'introspectionUrl', 'tokeninfoUrl', 'jwksUri', 'issuer'] as const) {
    if (options[name] !== undefined) requireEndpoint(owner, name, options[name])
  }
  if (options.introspectionUrl !== undefined && options.tokeninfoUrl !== undefined) {
    throw new ConfigurationError(`${owner}: pass introspectionUrl or tokeninfoUrl, not both.`)
  }
  if (options.tokenVerifier !== undefined && typeof options.tokenVerifier?.verify !== 'function') {
    throw new ConfigurationError(`${owner}: tokenVerifier must be what createTokenVerifier() returns.`)
  }
}
