import { ConfigurationError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import {
  checkClientOptions,
  KEY_SET_OPTIONS,
  type KeySetClientOptions,
  mergeEndpoints,
  type OAuthClientOptions,
  type ProviderEndpoints,
  requireEndpoint,
} from './client-options'
import { GitHubClient } from './github'
import { GoogleClient } from './google'
import { OidcClient, type OidcClientOptions } from './oidc-client'
import type { CodeExchange, OAuthTokens, OAuthUser, ProviderClient } from './provider-client'

interface Preset {
  readonly endpoints: ProviderEndpoints & { authorizeUrl: string; tokenUrl: string }
  readonly defaults: Partial<OidcClientOptions> & { providerName: string }
}

function optionsOf(
  owner: string,
  options: KeySetClientOptions,
  { endpoints, defaults }: Preset,
): OidcClientOptions & { authorizeUrl: string } {
  checkClientOptions(owner, options, [...KEY_SET_OPTIONS, 'endpoints'])
  const { endpoints: given, ...rest } = options
  return { ...defaults, ...rest, ...mergeEndpoints(owner, endpoints, given) }
}

export interface GitLabClientOptions extends KeySetClientOptions {
  /** The URL of your own GitLab, such as `https://git.example.com`. Default `https://gitlab.com`. */
  baseUrl?: string
}

/** Sign in with GitLab, at gitlab.com or on your own server. */
export class GitLabClient extends OidcClient {
  /** @throws ConfigurationError naming the option and the fix */
  constructor({ baseUrl = 'https://gitlab.com', ...options }: GitLabClientOptions) {
    requireEndpoint('GitLabClient', 'baseUrl', baseUrl)
    const base = baseUrl.replace(/\/+$/, '')
    const endpoints = {
      issuer: base,
      authorizeUrl: `${base}/oauth/authorize`,
      tokenUrl: `${base}/oauth/token`,
      userinfoUrl: `${base}/oauth/userinfo`,
      jwksUri: `${base}/oauth/discovery/keys`,
      introspectionUrl: `${base}/oauth/introspect`,
    }
    super(optionsOf('GitLabClient', options, { endpoints, defaults: { providerName: 'gitlab' } }))
  }
}

/** Sign in with LinkedIn. Its id_tokens have no nonce. PKCE is off: LinkedIn rejects the verifier of an application with a secret. */
export class LinkedInClient extends OidcClient {
  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: KeySetClientOptions) {
    const endpoints = {
      issuer: 'https://www.linkedin.com/oauth',
      authorizeUrl: 'https://www.linkedin.com/oauth/v2/authorization',
      tokenUrl: 'https://www.linkedin.com/oauth/v2/accessToken',
      userinfoUrl: 'https://api.linkedin.com/v2/userinfo',
      jwksUri: 'https://www.linkedin.com/oauth/openid/jwks',
      introspectionUrl: 'https://www.linkedin.com/oauth/v2/introspectToken',
    }
    super(optionsOf('LinkedInClient', options, { endpoints, defaults: { providerName: 'linkedin', pkce: false } }))
  }

  override exchangeCode({ nonce: _nonce, ...input }: CodeExchange): Promise<OAuthTokens> {
    return super.exchangeCode(input)
  }

  /** Accepts two issuers. LinkedIn's documentation and older id_tokens use an issuer without a path. */
  protected override acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean {
    return (
      super.acceptsIssuer(issuer, claims) || (issuer === 'https://www.linkedin.com' && this.issuer === 'https://www.linkedin.com/oauth')
    )
  }
}

/** Sign in with Slack. A person's `sub` differs in each workspace. `raw` has the workspace as `https://slack.com/team_id`. */
export class SlackClient extends OidcClient {
  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: KeySetClientOptions) {
    const endpoints = {
      issuer: 'https://slack.com',
      authorizeUrl: 'https://slack.com/openid/connect/authorize',
      tokenUrl: 'https://slack.com/api/openid.connect.token',
      userinfoUrl: 'https://slack.com/api/openid.connect.userInfo',
      jwksUri: 'https://slack.com/openid/connect/keys',
    }
    // Slack allows PKCE only for an app that was switched to PKCE, and such an app has no secret.
    super(optionsOf('SlackClient', options, { endpoints, defaults: { providerName: 'slack', pkce: false } }))
  }
}

/** Sign in with Twitch. Twitch returns only the claims that the parameter `claims` requests. The name is `preferred_username`. */
export class TwitchClient extends OidcClient {
  /** @throws ConfigurationError naming the option and the fix */
  constructor(options: KeySetClientOptions) {
    const endpoints = {
      issuer: 'https://id.twitch.tv/oauth2',
      authorizeUrl: 'https://id.twitch.tv/oauth2/authorize',
      tokenUrl: 'https://id.twitch.tv/oauth2/token',
      userinfoUrl: 'https://id.twitch.tv/oauth2/userinfo',
      jwksUri: 'https://id.twitch.tv/oauth2/keys',
    }
    const defaults = { providerName: 'twitch', scopes: ['openid', 'user:read:email'] }
    const oidcOptions = optionsOf('TwitchClient', options, { endpoints, defaults })
    super({ ...oidcOptions, authorizeUrl: askingForClaims(oidcOptions.authorizeUrl) })
  }

  protected override parseUser(claims: Record<string, unknown>, tokens: OAuthTokens): OAuthUser {
    return super.parseUser({ name: claims['preferred_username'], ...claims }, tokens)
  }
}

/** OpenID Connect Core section 5.5. */
function askingForClaims(authorizeUrl: string): string {
  const wanted = { email: null, email_verified: null, picture: null, preferred_username: null }
  const url = new URL(authorizeUrl)
  url.searchParams.set('claims', JSON.stringify({ id_token: wanted, userinfo: wanted }))
  return url.href
}

type Environment = Record<string, string | undefined>

/**
 * Returns the built-in clients: `google` if `OAUTH_GOOGLE_CLIENT_ID` is set, `github` if `OAUTH_GITHUB_CLIENT_ID` is set. The clients share
 * one HTTP client. Only the host calls this function: the library never reads the environment by itself.
 *
 * @throws ConfigurationError for a malformed variable; the message does not repeat the value
 */
export function providersFromEnv(env: Environment = process.env, shared: { httpClient?: HttpClient } = {}): Record<string, ProviderClient> {
  const httpClient = shared.httpClient ?? createHttpClient()
  const google = optionsFromEnv(env, 'GOOGLE')
  const github = optionsFromEnv(env, 'GITHUB')
  return {
    ...(google ? { google: new GoogleClient({ ...google, httpClient }) } : {}),
    ...(github ? { github: new GitHubClient({ ...github, httpClient }) } : {}),
  }
}

/** Null: the provider has no client id. An empty variable counts as unset. */
function optionsFromEnv(env: Environment, provider: string): OAuthClientOptions | null {
  const clientId = env[`OAUTH_${provider}_CLIENT_ID`] ?? ''
  if (clientId === '') return null
  return {
    clientId,
    clientSecret: env[`OAUTH_${provider}_CLIENT_SECRET`] ?? '',
    extraAudiences: readList(env, `OAUTH_${provider}_EXTRA_AUDIENCES`),
  }
}

function readList(env: Environment, variable: string): string[] {
  const list = parseOrNull(env[variable] || '[]')
  if (Array.isArray(list) && list.every((item) => typeof item === 'string' && item !== '')) return list
  throw new ConfigurationError(`${variable} must be a JSON list of non-empty strings, for example ["ios-client-id"].`)
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null // the parser's message would repeat the value
  }
}
