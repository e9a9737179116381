import { type AppError, OAuthTokenAudienceMismatchError, OAuthTokenRejectedError } from '../errors'
import type { HttpRequest } from '../http-client'
import { refuseOtherKinds } from './access-token-kind'
import { askProvider, isSuccess, type ProviderConnection } from './oauth2-request'
import { providerRefusal, providerUnavailable } from './provider-refusal'
import { isPlainObject, type ProviderAnswer, parseJsonObject } from './provider-request'
import { refused } from './signed-token'

type Claims = Record<string, unknown>

// These functions ask the provider about a token. They ask again for every login, because a stored answer would outlive a revocation.

/**
 * Introspects a token (RFC 7662). The provider answers with 200 for an invalid token (section 2.2), so a 4xx is about our request, mostly
 * our credentials. Only `unsupported_token_type` is about the token.
 *
 * @throws OAuthTokenRejectedError unless `active` is true, the token is within its times, and it is an access token
 * @throws OAuthError for a 4xx; OAuthProviderUnavailableError when there is no readable response
 */
export async function introspect(connection: ProviderConnection, url: string, accessToken: string, now: Date): Promise<Claims> {
  const form = new URLSearchParams({ token: accessToken, token_type_hint: 'access_token' })
  const { request, secrets } = connection.authenticate(form)
  const claims = await ask(connection, url, request, (answer) => {
    // This code is from RFC 7009. Some servers send it for a token of an unknown kind.
    const isOfNoKnownKind = answer.status === 400 && parseJsonObject(answer.body)?.['error'] === 'unsupported_token_type'
    return isOfNoKnownKind
      ? refused('the provider does not know the token')
      : providerRefusal(connection.providerName, answer, [accessToken, ...secrets])
  })
  if (claims['active'] !== true) throw refused('the token is not active')
  requireTimely(claims, now)
  refuseOtherKinds(claims)
  return claims
}

/**
 * Asks a tokeninfo endpoint like Google's: GET with the token in the query, so the URL of a call is never logged. The request has no
 * credentials of ours, so every 4xx is about the token.
 *
 * @throws OAuthTokenRejectedError for a 4xx, an `error`, `active: false`, a token outside its times
 * @throws OAuthProviderUnavailableError when there is no readable response
 */
export async function readTokeninfo(connection: ProviderConnection, tokeninfoUrl: string, accessToken: string, now: Date): Promise<Claims> {
  const url = new URL(tokeninfoUrl)
  url.searchParams.set('access_token', accessToken)
  const claims = await ask(connection, url.href, { headers: { accept: 'application/json' } }, () => new OAuthTokenRejectedError())
  refuseErrors(claims)
  if (claims['active'] === false) throw refused('the token is not active')
  requireTimely(claims, now)
  return claims
}

/**
 * Calls GitHub's "check a token": 200 only for a token of this application, 404 for any other.
 *
 * @throws OAuthTokenAudienceMismatchError for a 404; OAuthError when our credentials are refused (401, 403); OAuthTokenRejectedError for
 * another 4xx; OAuthProviderUnavailableError when there is no readable response
 */
export async function checkApplication(connection: ProviderConnection, apiUrl: string, accessToken: string): Promise<Claims> {
  const { clientId, clientSecret, providerName } = connection
  // RFC 7617: GitHub's API accepts both without encoding.
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
 * Calls Discord's "current authorization". The request has only the token itself, so every 4xx is about the token.
 *
 * @throws OAuthTokenRejectedError for a 4xx; OAuthProviderUnavailableError when there is no readable response
 */
export function readAuthorization(connection: ProviderConnection, url: string, accessToken: string): Promise<Claims> {
  const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` }
  return ask(connection, url, { headers }, () => new OAuthTokenRejectedError())
}

/**
 * Calls Facebook's "debug token" as this app. Facebook's own codes say whether it refuses the token or our credentials.
 *
 * @throws OAuthTokenAudienceMismatchError (code 100: of another app); OAuthError when our credentials are refused (190);
 * OAuthTokenRejectedError for another 4xx; OAuthProviderUnavailableError when there is no readable response
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

/** Rejects an `error` in the response, because some providers refuse with a 200. */
function refuseErrors({ error }: Claims): void {
  if (error !== undefined && error !== null) throw refused('the provider does not know the token')
}

/**
 * Rejects a token outside of its times. RFC 7662 section 2.2: a server that answers `active` has already checked them, but not every server
 * does.
 */
function requireTimely(claims: Claims, now: Date): void {
  const seconds = now.getTime() / 1000
  const [expires, begins] = ['exp', 'nbf'].map((name) => secondsOf(claims[name]))
  if (expires !== null && !(Number(expires) > seconds)) throw refused('exp is past')
  if (begins !== null && !(Number(begins) <= seconds + 60)) throw refused('nbf is not in the past')
}

/** Returns the seconds. Null: absent. Some providers send the number as a string. Any other value is NaN, which fails every check. */
function secondsOf(value: unknown): number | null {
  if (value === undefined || value === null) return null
  return typeof value === 'number' || (typeof value === 'string' && /^\d{1,12}$/.test(value)) ? Number(value) : Number.NaN
}
