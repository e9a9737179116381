import { type AppError, OAuthTokenAudienceMismatchError, OAuthTokenRejectedError } from '../core/errors'
import type { HttpRequest } from '../core/http-client'
import { askProvider, isSuccess, type ProviderConnection } from './oauth2-request'
import { providerRefusal, providerUnavailable } from './provider-refusal'
import { isPlainObject, type ProviderAnswer, parseJsonObject } from './provider-request'
import { signedTokenRefusal } from './signed-token'
import { refuseOtherKinds } from './token-verifier'

type Claims = Record<string, unknown>

// These functions ask the provider about a token at every login. A stored answer would not show a later revocation.

/**
 * RFC 7662. For an invalid token, the provider answers with 200 (section 2.2). So a 4xx is about our request, mostly our credentials. Only
 * `unsupported_token_type` is about the token.
 * @throws OAuthTokenRejectedError unless the token is active, valid at this time, and an access token
 * @throws OAuthError for a 4xx; OAuthProviderUnavailableError when there is no readable response
 */
export async function introspect(connection: ProviderConnection, url: string, accessToken: string, now: Date): Promise<Claims> {
  const form = new URLSearchParams({ token: accessToken, token_type_hint: 'access_token' })
  const { request, secrets } = connection.authenticate(form)
  const claims = await ask(connection, url, request, (answer) => {
    // `unsupported_token_type` is from RFC 7009. Some servers send it for a token of an unknown kind.
    const isOfNoKnownKind = answer.status === 400 && parseJsonObject(answer.body)?.['error'] === 'unsupported_token_type'
    return isOfNoKnownKind
      ? signedTokenRefusal('the provider does not know the token')
      : providerRefusal(connection.providerName, answer, [accessToken, ...secrets])
  })
  if (claims['active'] !== true) throw signedTokenRefusal('the token is not active')
  requireTimely(claims, now)
  refuseOtherKinds(claims)
  return claims
}

/**
 * By GET with the token in the query, so the library never logs the URL. Without our credentials: every 4xx is about the token.
 * @throws OAuthTokenRejectedError for a 4xx, an `error`, `active: false`, a token that is not valid at this time
 * @throws OAuthProviderUnavailableError when there is no readable response
 */
export async function readTokeninfo(connection: ProviderConnection, tokeninfoUrl: string, accessToken: string, now: Date): Promise<Claims> {
  const url = new URL(tokeninfoUrl)
  url.searchParams.set('access_token', accessToken)
  const claims = await ask(connection, url.href, { headers: { accept: 'application/json' } }, () => new OAuthTokenRejectedError())
  refuseErrors(claims)
  if (claims['active'] === false) throw signedTokenRefusal('the token is not active')
  requireTimely(claims, now)
  return claims
}

/**
 * GitHub's "check a token" answers 200 for a token of this application, and 404 for any other.
 * @throws OAuthTokenAudienceMismatchError for a 404; OAuthError when GitHub refuses our credentials (401, 403)
 * @throws OAuthTokenRejectedError for another 4xx; OAuthProviderUnavailableError when there is no readable response
 */
export async function checkApplication(connection: ProviderConnection, apiUrl: string, accessToken: string): Promise<Claims> {
  const { clientId, clientSecret, providerName } = connection
  // RFC 7617. GitHub's API accepts the id and the secret without encoding.
  const credentials = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
  const headers = { accept: 'application/json', 'content-type': 'application/json', authorization: `Basic ${credentials}` }
  const request = { method: 'POST', headers, body: JSON.stringify({ access_token: accessToken }) }
  const claims = await ask(connection, `${apiUrl}/applications/${encodeURIComponent(clientId)}/token`, request, (answer) => {
    if (answer.status === 404) return new OAuthTokenAudienceMismatchError()
    if (answer.status !== 401 && answer.status !== 403) return new OAuthTokenRejectedError()
    return providerRefusal(providerName, answer, [accessToken, clientSecret, credentials])
  })
  refuseErrors(claims)
  return claims
}

/**
 * Discord's "current authorization", without our credentials: every 4xx is about the token.
 * @throws OAuthTokenRejectedError for a 4xx; OAuthProviderUnavailableError when there is no readable response
 */
export function readAuthorization(connection: ProviderConnection, url: string, accessToken: string): Promise<Claims> {
  const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` }
  return ask(connection, url, { headers }, () => new OAuthTokenRejectedError())
}

/**
 * Facebook's own codes say whether it refuses the token or our credentials.
 * @throws OAuthTokenAudienceMismatchError (code 100: another app's token); OAuthError when Facebook refuses our credentials (190)
 * @throws OAuthTokenRejectedError for another 4xx; OAuthProviderUnavailableError when there is no readable response
 */
export async function debugToken(connection: ProviderConnection, apiUrl: string, accessToken: string): Promise<Claims> {
  const { clientId, clientSecret, providerName } = connection
  const url = `${apiUrl}/debug_token?${new URLSearchParams({ input_token: accessToken })}`
  const headers = { accept: 'application/json', authorization: `Bearer ${clientId}|${clientSecret}` }
  const { data } = await ask(connection, url, { headers }, (answer) => {
    const { code } = Object(parseJsonObject(answer.body)?.['error'])
    if (code === 100) return new OAuthTokenAudienceMismatchError()
    return code === 190 ? providerRefusal(providerName, answer, [accessToken, clientSecret]) : new OAuthTokenRejectedError()
  })
  if (!isPlainObject(data)) throw providerUnavailable(providerName, null)
  return data
}

async function ask(
  connection: ProviderConnection,
  url: string,
  request: HttpRequest,
  refusalOf: (answer: ProviderAnswer) => AppError,
): Promise<Claims> {
  const { answer, failure } = await askProvider(connection, url, { ...request, purpose: 'token' })
  if (answer && answer.status >= 400 && answer.status < 500) throw refusalOf(answer)
  const content = answer && isSuccess(answer) ? parseJsonObject(answer.body) : null
  if (!content) throw providerUnavailable(connection.providerName, answer, failure)
  return content
}

/** Some providers send an error with status 200. */
function refuseErrors({ error }: Claims): void {
  if (error !== undefined && error !== null) throw signedTokenRefusal('the provider does not know the token')
}

/** A server that answers `active` must check the times itself (RFC 7662 section 2.2), but some do not. */
function requireTimely(claims: Claims, now: Date): void {
  const seconds = now.getTime() / 1000
  const [expires, begins] = ['exp', 'nbf'].map((name) => secondsOf(claims[name]))
  if (expires !== null && !(Number(expires) > seconds)) throw signedTokenRefusal('exp is past')
  if (begins !== null && !(Number(begins) <= seconds + 60)) throw signedTokenRefusal('nbf is not in the past')
}

/** Null: absent. Some providers send the number as a string. NaN for any other value: NaN fails every check. */
function secondsOf(value: unknown): number | null {
  if (value === undefined || value === null) return null
  return typeof value === 'number' || (typeof value === 'string' && /^\d{1,12}$/.test(value)) ? Number(value) : Number.NaN
}
