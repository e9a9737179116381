import { createPublicKey, type KeyObject } from 'node:crypto'
import { ConfigurationError } from '../core/errors'
import { importPrivateKey } from './client-authentication'
import { checkClientOptions, KEY_SET_OPTIONS, type KeySetClientOptions, mergeEndpoints } from './client-options'
import { normalizeProfile } from './normalize-profile'
import { OidcClient, type OidcClientOptions } from './oidc-client'
import type { CodeExchange, OAuthTokens, OAuthUser } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { isPlainObject, parseJsonObject } from './provider-request'
import { algorithmsFor, signJwt } from './signed-token'

export interface AppleClientOptions
  extends Omit<KeySetClientOptions, 'clientSecret' | 'clientAuthentication' | 'clientKey' | 'responseMode'> {
  /** The id of your developer team: ten letters and digits. */
  teamId: string
  /** The id of the key for Sign in with Apple: ten letters and digits. */
  keyId: string
  /** The content of that key's file (`AuthKey_….p8`) in PEM, or a KeyObject. */
  privateKey: string | KeyObject
}

// Fixed and not discovered: for some days in 2025, Apple's discovery document and Apple's tokens named different issuers.
const ENDPOINTS = {
  authorizeUrl: 'https://appleid.apple.com/auth/authorize',
  tokenUrl: 'https://appleid.apple.com/auth/token',
  jwksUri: 'https://appleid.apple.com/auth/keys',
  issuer: 'https://appleid.apple.com',
}

/** Apple accepts up to six months. A short time is enough, because the client makes a new secret for each request. */
const secretSeconds = 300

/**
 * Sign in with Apple. The client secret is a JWT, signed with the team's key. If the app requests a name or an address, Apple sends the
 * callback by `form_post`. Apple sends the name only in that form, and only at a person's first login.
 */
export class AppleClient extends OidcClient {
  readonly #isPublicIssuer: boolean
  readonly #audience: string
  readonly #team: { teamId: string; keyId: string; key: KeyObject }

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: AppleClientOptions) {
    const oidcOptions = withAppleEndpoints(options)
    super(oidcOptions)
    this.#audience = oidcOptions.issuer
    this.#isPublicIssuer = oidcOptions.issuer === ENDPOINTS.issuer
    this.#team = readTeam(options)
  }

  /** Exchanges the code. @throws OAuthError as in OidcClient, and if the response has no id_token */
  override async exchangeCode(input: CodeExchange): Promise<OAuthTokens> {
    const tokens = await super.exchangeCode(input)
    if (tokens.idToken === null) throw unusableIdentity(this.providerName, 'the token endpoint gave no id_token')
    return tokens
  }

  /**
   * Returns the name in `{"name":{"firstName":"…","lastName":"…"},"email":"…"}`. Does not return the address, because the form is not
   * signed. The address comes only from the id_token.
   */
  nameOfForm(user: string): string | null {
    const name = parseJsonObject(Buffer.from(user))?.['name']
    if (!isPlainObject(name)) return null
    const parts = [name['firstName'], name['lastName']].filter((part) => typeof part === 'string')
    return parts.join(' ').trim() || null
  }

  /** Also accepts `https://account.apple.com`. Some tokens had that issuer when Apple moved its account pages. */
  protected override acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean {
    return super.acceptsIssuer(issuer, claims) || (this.#isPublicIssuer && issuer === 'https://account.apple.com')
  }

  /** An id_token of Apple has no name and no picture. A relay address (`is_private_email`) counts like any other address. */
  protected override parseUser(claims: Record<string, unknown>): OAuthUser {
    const { sub, email, email_verified: emailVerified } = claims
    return normalizeProfile(this.providerName, { subject: sub, email, emailVerified, raw: claims })
  }

  protected override freshSecret(now: Date): string {
    const { teamId, keyId, key } = this.#team
    const iat = Math.floor(now.getTime() / 1000)
    const claims = { iss: teamId, iat, exp: iat + secretSeconds, aud: this.#audience, sub: this.clientId }
    return signJwt(claims, { key, alg: 'ES256', kid: keyId })
  }
}

function withAppleEndpoints(options: AppleClientOptions): OidcClientOptions & { issuer: string } {
  if (typeof options !== 'object' || options === null) throw new ConfigurationError('AppleClient: pass an options object.')
  const { teamId: _team, keyId: _key, privateKey: _private, ...shared } = options
  const allowed = [...KEY_SET_OPTIONS, 'endpoints'].filter((name) => !notApples.includes(name))
  const refused = Object.keys(shared).find((name) => !allowed.includes(name))
  if (refused !== undefined) {
    const hint = notApples.includes(refused) ? '; AppleClient makes its client secret from teamId, keyId and privateKey' : ''
    throw new ConfigurationError(`AppleClient: unknown option ${refused}${hint}.`)
  }
  const complete = { ...shared, clientSecret: '' } // `freshSecret` makes the secret
  checkClientOptions('AppleClient', complete, [...allowed, 'clientSecret'])
  const { endpoints, ...rest } = complete
  // Always adds `openid`, because the login sends a nonce only with this scope.
  const scopes = [...new Set(['openid', ...(options.scopes ?? ['name', 'email'])])]
  const byForm = scopes.some((scope) => scope === 'name' || scope === 'email')
  return {
    providerName: 'apple',
    ...rest,
    scopes,
    ...mergeEndpoints('AppleClient', ENDPOINTS, endpoints),
    ...(byForm && { responseMode: 'form_post' }),
  }
}

/** Apple's rules decide these options. */
const notApples: readonly string[] = ['clientSecret', 'clientAuthentication', 'clientKey', 'responseMode']

function readTeam(options: AppleClientOptions): { teamId: string; keyId: string; key: KeyObject } {
  const { teamId, keyId, privateKey } = options
  for (const name of ['teamId', 'keyId'] as const) {
    if (typeof options[name] === 'string' && /^[\x21-\x7e]{1,64}$/.test(options[name])) continue
    throw new ConfigurationError(`AppleClient: ${name} must be the ten letters and digits that Apple's developer pages show.`)
  }
  const key = importPrivateKey(privateKey)
  if (key && algorithmsFor(createPublicKey(key)).includes('ES256')) return { teamId, keyId, key }
  throw new ConfigurationError(
    'AppleClient: privateKey must be the content of the AuthKey_….p8 file (PEM with its line breaks, an EC key on P-256), or a KeyObject of it.',
  )
}
