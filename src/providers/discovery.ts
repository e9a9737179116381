import { ConfigurationError, OAuthProviderUnavailableError } from '../errors'
import { type HttpClient, HttpClientError } from '../http-client'
import { seeTroubleshooting } from '../troubleshooting'
import { requireEndpoint } from './client-options'
import { SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from './jws'
import { callProvider, parseJsonObject } from './provider-request'

export interface Discovery {
  endpoints: DiscoveredEndpoints
  /** RFC 9207 section 3: every authorization response of this provider has `iss`. */
  sendsIssuerParameter: boolean
  /** Which signatures of id_tokens count. */
  idTokenAlgorithms: readonly SignatureAlgorithm[]
}

export interface DiscoveredEndpoints {
  issuer: string
  authorizeUrl: string
  tokenUrl: string
  jwksUri: string
  userinfoUrl?: string
  introspectionUrl?: string
  clientAuthentication: 'client_secret_basic' | 'client_secret_post'
}

/**
 * OpenID Connect Discovery 1.0, section 4. The document's issuer must be the one asked for, character by character
 * (section 4.3): otherwise a provider could speak for another.
 *
 * @param provider names the provider in errors
 * @throws ConfigurationError when the document is of another issuer or names an unusable endpoint
 * @throws OAuthProviderUnavailableError when there is no document to read
 */
export async function readDiscovery(issuer: string, httpClient: HttpClient, provider: string): Promise<Discovery> {
  refuseEmpty(issuer, provider)
  requireEndpoint('discover', 'issuer', issuer)
  const document = await fetchDocument(issuer, httpClient, provider)
  if (document['issuer'] !== issuer) {
    throw new ConfigurationError(
      "discover: the provider's document names another issuer; pass the issuer exactly as the provider spells it.",
    )
  }
  return {
    endpoints: endpointsOf(document, issuer),
    sendsIssuerParameter: document['authorization_response_iss_parameter_supported'] === true,
    idTokenAlgorithms: algorithmsOf(document['id_token_signing_alg_values_supported']),
  }
}

/** Most often a variable that is not set. */
function refuseEmpty(issuer: unknown, provider: string): void {
  if (issuer !== '' && issuer !== undefined) return
  throw new ConfigurationError(
    `discover: the issuer is empty (providers.${provider}); pass the provider's address, such as https://id.example.com. If it comes from an environment variable, set that. ${seeTroubleshooting('issuer-empty')}`,
  )
}

function endpointsOf(document: Record<string, unknown>, issuer: string): DiscoveredEndpoints {
  return {
    issuer,
    authorizeUrl: endpoint(document, 'authorization_endpoint'),
    tokenUrl: endpoint(document, 'token_endpoint'),
    jwksUri: endpoint(document, 'jwks_uri'),
    ...(document['userinfo_endpoint'] === undefined ? {} : { userinfoUrl: endpoint(document, 'userinfo_endpoint') }),
    ...(document['introspection_endpoint'] === undefined ? {} : { introspectionUrl: endpoint(document, 'introspection_endpoint') }),
    clientAuthentication: authenticationOf(document['token_endpoint_auth_methods_supported']),
  }
}

async function fetchDocument(issuer: string, httpClient: HttpClient, provider: string): Promise<Record<string, unknown>> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { status, body } = await callProvider(httpClient, url, { headers: { accept: 'application/json' }, purpose: 'discovery' }).catch(
    (error: unknown) => {
      throw error instanceof HttpClientError ? unavailable(`cannot reach ${issuer}: ${error.code}`, provider) : error
    },
  )
  const document = status >= 200 && status < 300 ? parseJsonObject(body) : null
  if (document) return document
  throw unavailable(`no OpenID provider answers at ${issuer}: status ${status} and no JSON object from ${url}`, provider)
}

/** Mostly met at a start that fails, where Node prints the message first. */
function unavailable(what: string, provider: string): OAuthProviderUnavailableError {
  return new OAuthProviderUnavailableError({ message: `${what} (providers.${provider}). ${seeTroubleshooting('provider-unreachable')}` })
}

function endpoint(document: Record<string, unknown>, name: string): string {
  const value = document[name]
  requireEndpoint('discover', `the document's ${name}`, value)
  return value
}

/** Section 3: in the header where nothing is listed. */
function authenticationOf(supported: unknown = ['client_secret_basic']): DiscoveredEndpoints['clientAuthentication'] {
  return Array.isArray(supported) && supported.includes('client_secret_basic') ? 'client_secret_basic' : 'client_secret_post'
}

/** Those that are listed; a document without a list narrows nothing. */
function algorithmsOf(supported: unknown): readonly SignatureAlgorithm[] {
  return Array.isArray(supported) ? SIGNATURE_ALGORITHMS.filter((algorithm) => supported.includes(algorithm)) : SIGNATURE_ALGORITHMS
}
