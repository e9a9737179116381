import { ConfigurationError, OAuthProviderUnavailableError } from '../core/errors'
import { type HttpClient, HttpClientError } from '../core/http-client'
import { withOwnMessage } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import { CLIENT_AUTHENTICATIONS } from './client-authentication'
import { requireEndpoint } from './client-options'
import { callProvider, type ProviderAnswer, parseJsonObject } from './provider-request'
import { algorithmNamed, SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from './signed-token'

export interface ProviderFacts {
  /** Every authorization response of this provider has `iss` (RFC 9207 section 3). */
  sendsIssuerParameter: boolean
  idTokenAlgorithms: readonly SignatureAlgorithm[]
  /** The provider accepts only pushed authorization requests (RFC 9126 section 5). */
  requiresPushedRequests: boolean
}

interface Discovery {
  endpoints: DiscoveredEndpoints
  facts: ProviderFacts
}

/** For a provider whose URLs the host has set: doorward reads no discovery document. */
export const UNKNOWN_FACTS: ProviderFacts = Object.freeze({
  sendsIssuerParameter: false,
  idTokenAlgorithms: SIGNATURE_ALGORITHMS,
  requiresPushedRequests: false,
})

export interface DiscoveredEndpoints {
  issuer: string
  authorizeUrl: string
  tokenUrl: string
  jwksUri: string
  userinfoUrl?: string
  introspectionUrl?: string
  pushedAuthorizationUrl?: string
  endSessionUrl?: string
  clientAuthentication: 'client_secret_basic' | 'client_secret_post'
}

/**
 * OpenID Connect Discovery 1.0, section 4. The issuer in the document must equal the requested issuer exactly (section 4.3). Otherwise one
 * provider could claim to be another provider.
 * @param needs `idTokens`: the client names no algorithms itself. `secretMethod`: it has a secret, and names no authentication method
 * @throws ConfigurationError for another issuer, an unusable endpoint, or what doorward does not support
 * @throws OAuthProviderUnavailableError when the document cannot be read
 */
export async function readDiscovery(
  issuer: string,
  httpClient: HttpClient,
  { provider, needs }: { provider: string; needs: { idTokens: boolean; secretMethod: boolean } },
): Promise<Discovery> {
  const document = await fetchDocument(issuer, httpClient, provider)
  if (document['issuer'] !== issuer) {
    throw new ConfigurationError(
      `discover: the provider's document names another issuer (providers.${provider}); pass the issuer exactly as the provider spells it.`,
    )
  }
  const problem = unsupported(document, needs)
  if (problem) throw new ConfigurationError(`discover: the provider's document ${problem} (providers.${provider}).`)
  return {
    endpoints: endpointsOf(document, issuer),
    facts: {
      sendsIssuerParameter: document['authorization_response_iss_parameter_supported'] === true,
      idTokenAlgorithms: algorithmsOf(document['id_token_signing_alg_values_supported']),
      requiresPushedRequests: document['require_pushed_authorization_requests'] === true,
    },
  }
}

/** An empty issuer usually means that an environment variable is not set. @throws ConfigurationError */
export function requireIssuer(issuer: unknown, provider: string): void {
  if (issuer === '' || issuer === undefined) {
    throw new ConfigurationError(
      `discover: the issuer is empty (providers.${provider}); pass the provider's address, such as https://id.example.com. If it comes from an environment variable, set that. ${seeTroubleshooting('issuer-empty')}`,
    )
  }
  requireEndpoint('discover', 'issuer', issuer)
}

function unsupported(document: Record<string, unknown>, needs: { idTokens: boolean; secretMethod: boolean }): string | null {
  const methods = document['token_endpoint_auth_methods_supported']
  if (document['dpop_bound_access_tokens'] === true)
    return 'requires DPoP, which doorward does not support: register this client without DPoP'
  if (needs.secretMethod && Array.isArray(methods) && !methods.some((method) => CLIENT_AUTHENTICATIONS.includes(method)))
    return `lists no client authentication that doorward supports (client_secret_jwt is not supported): set clientAuthentication to one of ${CLIENT_AUTHENTICATIONS.join(', ')} that the provider accepts`
  if (needs.idTokens && algorithmsOf(document['id_token_signing_alg_values_supported']).length === 0)
    return `lists no id_token algorithm that doorward accepts: have the provider sign with one of ${SIGNATURE_ALGORITHMS.join(', ')}, or set idTokenAlgorithms: ['HS256'] if it signs with the client secret`
  return null
}

function endpointsOf(document: Record<string, unknown>, issuer: string): DiscoveredEndpoints {
  return {
    issuer,
    authorizeUrl: endpoint(document, 'authorization_endpoint'),
    tokenUrl: endpoint(document, 'token_endpoint'),
    jwksUri: endpoint(document, 'jwks_uri'),
    ...optionalEndpoints(document),
    clientAuthentication: authenticationOf(document['token_endpoint_auth_methods_supported']),
  }
}

const OPTIONAL_ENDPOINTS = [
  ['userinfoUrl', 'userinfo_endpoint'],
  ['introspectionUrl', 'introspection_endpoint'],
  ['pushedAuthorizationUrl', 'pushed_authorization_request_endpoint'],
  ['endSessionUrl', 'end_session_endpoint'],
] as const

function optionalEndpoints(document: Record<string, unknown>): Partial<DiscoveredEndpoints> {
  const given = OPTIONAL_ENDPOINTS.filter(([, name]) => document[name] !== undefined)
  return Object.fromEntries(given.map(([option, name]) => [option, endpoint(document, name)]))
}

async function fetchDocument(issuer: string, httpClient: HttpClient, provider: string): Promise<Record<string, unknown>> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { status, body } = await askFollowing(httpClient, url).catch((error: unknown) => {
    throw error instanceof HttpClientError ? unavailable(`cannot reach ${issuer}: ${error.code}`, provider) : error
  })
  const document = status >= 200 && status < 300 ? parseJsonObject(body) : null
  if (document) return document
  throw unavailable(`no OpenID provider answers at ${issuer}: status ${status} and no JSON object from ${url}`, provider)
}

/** Some providers redirect if the URL has a missing or double slash. Only a redirect to the provider's own origin is followed. */
async function askFollowing(httpClient: HttpClient, url: string): Promise<ProviderAnswer> {
  const request = { headers: { accept: 'application/json' }, purpose: 'discovery' } as const
  const answer = await callProvider(httpClient, url, request)
  const { status, location } = answer
  if (status < 300 || status >= 400 || location === null || !URL.canParse(location, url)) return answer
  const target = new URL(location, url)
  return target.origin === new URL(url).origin ? callProvider(httpClient, target.href, request) : answer
}

/** The problem is in the message too, because Node prints the message if the app fails to start with this error. */
function unavailable(what: string, provider: string): OAuthProviderUnavailableError {
  const message = `${what} (providers.${provider}). ${seeTroubleshooting('provider-unreachable')}`
  return new OAuthProviderUnavailableError({ message, cause: withOwnMessage(new Error(message)) })
}

function endpoint(document: Record<string, unknown>, name: string): string {
  const value = document[name]
  requireEndpoint('discover', `the document's ${name}`, value)
  return value
}

/** If the document has no list, the method is `client_secret_basic` (section 3). */
function authenticationOf(supported: unknown = ['client_secret_basic']): DiscoveredEndpoints['clientAuthentication'] {
  return Array.isArray(supported) && supported.includes('client_secret_basic') ? 'client_secret_basic' : 'client_secret_post'
}

/** If the document has no list, returns all supported algorithms. */
function algorithmsOf(supported: unknown): readonly SignatureAlgorithm[] {
  const listed = Array.isArray(supported) ? supported.map(algorithmNamed) : SIGNATURE_ALGORITHMS
  return SIGNATURE_ALGORITHMS.filter((algorithm) => listed.includes(algorithm))
}

export interface BackgroundDiscovery<Found> {
  readonly found: Found | null
  /** Reads the document if necessary. Simultaneous callers share one attempt. */
  find(): Promise<Found>
  /** Tries again after 1, 2, 4 … 60 seconds until the read succeeds. A second call of `begin` does nothing. */
  begin(onFailure: (error: unknown) => void): void
}

const MAX_DELAY_SECONDS = 60

/** @param known a result that needs no reading; null: no such result */
export function createBackgroundDiscovery<Found>(read: () => Promise<Found>, known: Found | null): BackgroundDiscovery<Found> {
  let found = known
  let inFlight: Promise<Found> | null = null
  let hasBegun = false

  async function readOnce(): Promise<Found> {
    found = await read()
    return found
  }

  async function find(): Promise<Found> {
    if (found !== null) return found
    inFlight ??= readOnce().finally(() => {
      inFlight = null
    })
    return inFlight
  }

  async function attempt(delaySeconds: number, onFailure: (error: unknown) => void): Promise<void> {
    try {
      await find()
    } catch (error) {
      onFailure(error)
      // The clock of a test does not move by itself, so this is the system's. `unref` lets the process end while the timer waits.
      setTimeout(() => void attempt(Math.min(delaySeconds * 2, MAX_DELAY_SECONDS), onFailure), delaySeconds * 1000).unref()
    }
  }

  return {
    get found() {
      return found
    },
    find,
    begin(onFailure) {
      if (hasBegun || found !== null) return
      hasBegun = true
      void attempt(1, onFailure)
    },
  }
}
