import { checkClientOptions, KEY_SET_OPTIONS, type KeySetClientOptions, mergeEndpoints } from './client-options'
import { OidcClient, type OidcClientOptions } from './oidc-client'

const ENDPOINTS = {
  authorizeUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
  tokenUrl: 'https://oauth2.googleapis.com/token',
  userinfoUrl: 'https://openidconnect.googleapis.com/v1/userinfo',
  tokeninfoUrl: 'https://oauth2.googleapis.com/tokeninfo',
  jwksUri: 'https://www.googleapis.com/oauth2/v3/certs',
  issuer: 'https://accounts.google.com',
}

/** Sign in with Google: OpenID Connect with its public endpoints; id_token signatures are always checked. */
export class GoogleClient extends OidcClient {
  readonly #isPublicIssuer: boolean

  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: KeySetClientOptions) {
    const oidcOptions = withGoogleEndpoints(options)
    super(oidcOptions)
    this.#isPublicIssuer = oidcOptions.issuer === ENDPOINTS.issuer
  }

  /** Google documents two spellings of its issuer, one without the scheme. */
  protected override acceptsIssuer(issuer: string): boolean {
    return super.acceptsIssuer(issuer) || (this.#isPublicIssuer && issuer === 'accounts.google.com')
  }
}

function withGoogleEndpoints(options: KeySetClientOptions): OidcClientOptions {
  checkClientOptions('GoogleClient', options, [...KEY_SET_OPTIONS, 'endpoints'])
  const { endpoints, ...rest } = options
  return { providerName: 'google', ...rest, ...mergeEndpoints('GoogleClient', ENDPOINTS, endpoints) }
}
