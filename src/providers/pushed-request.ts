import { askProvider, isSuccess, type ProviderConnection } from './oauth2-request'
import { providerUnavailable } from './provider-refusal'
import { parseJsonObject } from './provider-request'
import { ProviderSaidNo } from './provider-said-no'

/**
 * Pushes an authorization request to the provider, and returns the URL for the browser (RFC 9126 sections 2 and 4).
 *
 * @param authorizationUrl the URL with all parameters
 * @throws OAuthProviderUnavailableError unless the response is 2xx and has a `request_uri`
 */
export async function pushRequest(
  connection: ProviderConnection,
  { url, authorizeUrl, authorizationUrl }: { url: string; authorizeUrl: string; authorizationUrl: string },
): Promise<string> {
  const { request } = connection.authenticate(new URL(authorizationUrl).searchParams)
  const { answer, failure } = await askProvider(connection, url, { ...request, purpose: 'authorize' })
  const content = answer && parseJsonObject(answer.body)
  const requestUri = answer && isSuccess(answer) ? content?.['request_uri'] : null
  if (typeof requestUri !== 'string' || requestUri === '') {
    const said = answer && new ProviderSaidNo(content?.['error'], { status: answer.status, isCredentialStatus: answer.status === 401 })
    throw providerUnavailable(connection.providerName, answer, said ?? failure)
  }
  const target = new URL(authorizeUrl)
  target.searchParams.set('client_id', connection.clientId)
  target.searchParams.set('request_uri', requestUri)
  return target.href
}
