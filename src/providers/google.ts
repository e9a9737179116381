import { ConfigurationError } from '../core/errors'
import { checkClientOptions, KEY_SET_OPTIONS, type KeySetClientOptions, mergeEndpoints } from './client-options'
import { OidcClient, type OidcClientOptions } from './oidc-client'
import type { OAuthTokens, OAuthUser } from './provider-client'

const ENDPOINTS = {
  authorizeUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
  tokenUrl: 'https://oauth2.googleapis.com/token',
  userinfoUrl: 'https://openidconnect.googleapis.com/v1/userinfo',
  tokeninfoUrl: 'https://oauth2.googleapis.com/tokeninfo',
  jwksUri: 'https://www.googleapis.com/oauth2/v3/certs',
  issuer: 'https://accounts.google.com',
}

export interface GoogleClientOptions extends KeySetClientOptions {
  /**
   * True: an address counts as verified only if Google controls its domain. Google controls gmail.com, googlemail.com and the Workspace
   * domain of the account (`hd`). About any other address, Google only knows that the person owned the address at some time. Default false.
   */
  authoritativeEmails?: boolean
}

/** Sign in with Google: OpenID Connect with Google's public endpoints. The client always checks the signatures of id_tokens. */
export class GoogleClient extends OidcClient {
  readonly #isPublicIssuer: boolean
  readonly #authoritativeEmails: boolean

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: GoogleClientOptions) {
    const { authoritativeEmails, oidcOptions } = readOptions(options)
    super(oidcOptions)
    this.#isPublicIssuer = oidcOptions.issuer === ENDPOINTS.issuer
    this.#authoritativeEmails = authoritativeEmails
  }

  /** Accepts Google's issuer with and without `https://`. */
  protected override acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean {
    return super.acceptsIssuer(issuer, claims) || (this.#isPublicIssuer && issuer === 'accounts.google.com')
  }

  protected override parseUser(claims: Record<string, unknown>, tokens: OAuthTokens): OAuthUser {
    const user = super.parseUser(claims, tokens)
    if (!this.#authoritativeEmails || !user.emailVerified || isAuthority(user.email, claims['hd'])) return user
    return { ...user, emailVerified: null }
  }
}

/** True if Google controls the domain (https://developers.google.com/identity/sign-in/web/backend-auth, read in 2025). */
function isAuthority(email: string | null, hostedDomain: unknown): boolean {
  const domain = email?.slice(email.lastIndexOf('@') + 1).toLowerCase() ?? ''
  if (domain === 'gmail.com' || domain === 'googlemail.com') return true
  return typeof hostedDomain === 'string' && domain !== '' && hostedDomain.toLowerCase() === domain
}

function readOptions(options: GoogleClientOptions): { authoritativeEmails: boolean; oidcOptions: OidcClientOptions } {
  checkClientOptions('GoogleClient', options, [...KEY_SET_OPTIONS, 'endpoints', 'authoritativeEmails'])
  const { endpoints, authoritativeEmails = false, ...rest } = options
  if (typeof authoritativeEmails !== 'boolean') throw new ConfigurationError('GoogleClient: authoritativeEmails must be true or false.')
  const oidcOptions = { providerName: 'google', ...rest, ...mergeEndpoints('GoogleClient', ENDPOINTS, endpoints) }
  return { authoritativeEmails, oidcOptions }
}
