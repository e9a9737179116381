import { ConfigurationError, OAuthProviderUnavailableError } from '../errors'
import { type HttpClient, HttpClientError } from '../http-client'
import { requireEndpoint } from './client-options'
import { callProvider, parseJsonObject } from './provider-request'

export interface DiscoveredEndpoints {
  issuer: string
  authorizeUrl: string
  tokenUrl: string
  jwksUri: string
  userinfoUrl?: string
  introspectionUrl?: string
  clientAuthentication: 'client_secret_post' | 'client_secret_basic'
}

/**
 * OpenID Connect Discovery 1.0, section 4. The document's issuer must be the one asked for, character by character
 * (section 4.3): otherwise a provider could speak for another.
 *
 * @throws ConfigurationError when the document is of another issuer or names an unusable endpoint
 * @throws OAuthProviderUnavailableError when there is no document to read
 */
export async function readDiscovery(issuer: string, httpClient: HttpClient): Promise<DiscoveredEndpoints> {
  requireEndpoint('discover', 'issuer', issuer)
  const document = await fetchDocument(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, httpClient)
  if (document['issuer'] !== issuer) {
    throw new ConfigurationError(
      "discover: the provider's document names another issuer; pass the issuer exactly as the provider spells it.",
    )
  }
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

async function fetchDocument(url: string, httpClient: HttpClient): Promise<Record<string, unknown>> {
  try {
    const { status, body } = await callProvider(httpClient, url, { headers: { accept: 'application/json' } })
    const document = status >= 200 && status < 300 ? parseJsonObject(body) : null
    if (document) return document
  } catch (error) {
    if (error instanceof HttpClientError) throw unreadable(url, error.code)
    throw error
  }
  throw unreadable(url, 'the answer is no JSON object')
}

/** Mostly met at a start that fails: the cause, which Node prints, says where nothing was found. */
function unreadable(url: string, reason: string): OAuthProviderUnavailableError {
  return new OAuthProviderUnavailableError({ cause: new Error(`No OpenID provider could be read at ${url} (${reason}).`) })
}

function endpoint(document: Record<string, unknown>, name: string): string {
  const value = document[name]
  requireEndpoint('discover', `the document's ${name}`, value)
  return value
}

/** In the body, as the specification of this service says, unless the provider lists only the header. */
function authenticationOf(supported: unknown): DiscoveredEndpoints['clientAuthentication'] {
  const isBasicOnly = Array.isArray(supported) && supported.includes('client_secret_basic') && !supported.includes('client_secret_post')
  return isBasicOnly ? 'client_secret_basic' : 'client_secret_post'
}
