import { type AppError, OAuthTokenAudienceMismatchError, OAuthTokenRejectedError } from '../errors'
import type { HttpRequest } from '../http-client'
import { refuseOtherKinds } from './access-token-kind'
import { askProvider, isSuccess, type ProviderConnection } from './oauth2-request'
import { providerRefusal, providerUnavailable } from './provider-refusal'
import { isPlainObject, type ProviderAnswer, parseJsonObject } from './provider-request'
import { refused } from './signed-token'

type Claims = Record<string, unknown>

// What a provider says of a token it is shown. Asked anew for every login: an answer that is kept outlives a revocation.

/**
 * RFC 7662. A token that is not valid is answered with 200 (section 2.2), so a 4xx is about how we asked, our credentials mostly; but `unsupported_token_type` is about the token.
 *
 * @throws OAuthTokenRejectedError unless `active` is true, and the token timely and an access token
 * @throws OAuthError for a 4xx; OAuthProviderUnavailableError when there is no answer to read
 */
export async function introspect(connection: ProviderConnection, url: string, accessToken: string, now: Date): Promise<Claims> {
  const form = new URLSearchParams({ token: accessToken, token_type_hint: 'access_token' })
  const { request, secrets } = connection.authenticate(form)
  const claims = await ask(connection, url, request, (answer) => {
    // Of RFC 7009: some servers answer so to a token of a kind that they do not know.
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
 * The shape Google has: GET with the token in the query, which is why no URL of a call is ever logged. Nothing of ours
 * goes along, so every 4xx is about the token.
 *
 * @throws OAuthTokenRejectedError for a 4xx, an `error`, `active: false`, a token that is not timely
 * @throws OAuthProviderUnavailableError when there is no answer to read
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
 * GitHub's "check a token": 200 only for a token of this application, 404 for any other.
 *
 * @throws OAuthTokenAudienceMismatchError for a 404; OAuthError when our credentials are refused (401, 403);
 *   OAuthTokenRejectedError for another 4xx; OAuthProviderUnavailableError when there is no answer to read
 */
export async function checkApplication(connection: ProviderConnection, apiUrl: string, accessToken: string): Promise<Claims> {
  const { clientId, clientSecret, providerName } = connection
  // RFC 7617: GitHub's API takes both as they are.
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
 * Discord's "current authorization": asked with the token itself, so every 4xx is about it.
 *
 * @throws OAuthTokenRejectedError for a 4xx; OAuthProviderUnavailableError when there is no answer to read
 */
export function readAuthorization(connection: ProviderConnection, url: string, accessToken: string): Promise<Claims> {
  const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` }
  return ask(connection, url, { headers }, () => new OAuthTokenRejectedError())
}

/**
 * Facebook's "debug token", asked as this app. It says in codes of its own whether it refuses the token or us.
 *
 * @throws OAuthTokenAudienceMismatchError (code 100: of another app); OAuthError when our credentials are refused (190);
 *   OAuthTokenRejectedError for another 4xx; OAuthProviderUnavailableError when there is no answer to read
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

/** Some say no with a 200. */
function refuseErrors({ error }: Claims): void {
  if (error !== undefined && error !== null) throw refused('the provider does not know the token')
}

/** RFC 7662 section 2.2: a server that says `active` has looked at these; one that did not is not believed. */
function requireTimely(claims: Claims, now: Date): void {
  const seconds = now.getTime() / 1000
  const [expires, begins] = ['exp', 'nbf'].map((name) => secondsOf(claims[name]))
  if (expires !== null && !(Number(expires) > seconds)) throw refused('exp is past')
  if (begins !== null && !(Number(begins) <= seconds + 60)) throw refused('nbf is not in the past')
}

/** Null: not said. Some providers write the number as a string; anything else is no time, which is never timely. */
function secondsOf(value: unknown): number | null {
  if (value === undefined || value === null) return null
  return typeof value === 'number' || (typeof value === 'string' && /^\d{1,12}$/.test(value)) ? Number(value) : Number.NaN
}
