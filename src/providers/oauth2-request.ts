import { type CallPurpose, type HttpClient, HttpClientError, type HttpRequest } from '../core/http-client'
import type { Authenticate } from './client-authentication'
import type { CodeExchange, OAuthTokens } from './provider-client'
import { ProviderSaidNo, providerRefusal, providerUnavailable, tokenRefusal, unusableTokens } from './provider-refusal'
import { type CallLimits, callProvider, limitInFlight, type ProviderAnswer, parseJsonList, parseJsonObject } from './provider-request'

export interface ProviderConnection {
  readonly providerName: string
  readonly clientId: string
  /** Empty: the client has no secret. Errors and logs never show the secret, even if an endpoint repeats it. */
  readonly clientSecret: string
  readonly authenticate: Authenticate
  readonly tokenUrl: string
  readonly httpClient: HttpClient
  readonly limits: CallLimits
}

/** Each client of the library has its own limits, even if clients share an HTTP client. */
export function connectTo(known: Omit<ProviderConnection, 'limits'>): ProviderConnection {
  const limits = limitInFlight(() => new HttpClientError('TOO_MANY_IN_FLIGHT', 'Too many calls to this provider are running.'))
  return Object.freeze({ ...known, limits })
}

/**
 * RFC 6749 section 4.1.3. Never sends the code again, because the provider accepts a code only once.
 * @param idTokenSuffices the response may have an id_token only, as of Azure AD B2C. The access token is then empty
 * @throws OAuthError unless the response is 2xx and a JSON object with a bearer access token and no `error`
 */
export async function requestTokens(
  connection: ProviderConnection,
  input: CodeExchange,
  { idTokenSuffices } = { idTokenSuffices: false },
): Promise<OAuthTokens> {
  const { request, secrets, isEncoded } = connection.authenticate(tokenForm(input))
  const { answer, failure } = await askProvider(connection, connection.tokenUrl, { ...request, purpose: 'callback' })
  const raw = answer && isSuccess(answer) ? parseJsonObject(answer.body) : null
  const fault = raw && faultOf(raw, idTokenSuffices)
  if (raw && !fault && !isPresent(raw['error'])) return readTokens(raw)
  const cause = failure ?? (raw && !isPresent(raw['error']) ? unusableTokens(fault) : undefined)
  throw tokenRefusal(connection.providerName, answer, [...secrets, input.code, input.codeVerifier], { cause, isEncoded })
}

/**
 * The token is only in the header `Authorization` (RFC 6750 section 2.1).
 * @throws OAuthError unless the response is 2xx and a JSON object without `error`
 * @throws OAuthProviderUnavailableError if an app sent the token and the response was not readable; the app can try again
 */
export function getWithBearer(connection: ProviderConnection, url: string, tokens: OAuthTokens): Promise<Record<string, unknown>> {
  return read(connection, url, tokens, readObject)
}

function readObject(body: Buffer): Record<string, unknown> | null {
  const content = parseJsonObject(body)
  return content && !isPresent(content['error']) ? content : null
}

/** A compact JWS (RFC 7515 section 3.1) or a compact JWE (RFC 7516 section 3.1). Null: neither. */
function readCompact(body: Buffer): string | null {
  const text = body.toString('latin1').trim()
  return /^[\w-]+(?:\.[\w-]*){2}(?:\.[\w-]*\.[\w-]*)?$/.test(text) ? text : null
}

/** The caller has to verify a returned JWT. @throws as `getWithBearer` */
export function getClaimsWithBearer(
  connection: ProviderConnection,
  url: string,
  tokens: OAuthTokens,
): Promise<Record<string, unknown> | string> {
  return read(connection, url, tokens, (body) => readObject(body) ?? readCompact(body), 'application/json, application/jwt')
}

/** @throws OAuthError unless the response is 2xx and a JSON array of objects; OAuthProviderUnavailableError as `getWithBearer` */
export function getListWithBearer(connection: ProviderConnection, url: string, tokens: OAuthTokens): Promise<Record<string, unknown>[]> {
  return read(connection, url, tokens, parseJsonList)
}

async function read<Content>(
  connection: ProviderConnection,
  url: string,
  { accessToken, proof }: OAuthTokens,
  parse: (body: Buffer) => Content | null,
  accept = 'application/json',
): Promise<Content> {
  const headers = { accept, authorization: `Bearer ${accessToken}` }
  const { answer, failure } = await askProvider(connection, url, { headers, purpose: proof ? 'token' : 'callback' })
  const content = answer && isSuccess(answer) ? parse(answer.body) : null
  if (content) return content
  if (proof && !saysNo(answer)) throw providerUnavailable(connection.providerName, answer, failure)
  throw providerRefusal(connection.providerName, answer, [accessToken, connection.clientSecret], failure)
}

/** Another try would not help if the provider answered and refused. */
function saysNo(answer: ProviderAnswer | null): boolean {
  if (!answer) return false
  return (answer.status >= 400 && answer.status < 500) || (isSuccess(answer) && parseJsonObject(answer.body) !== null)
}

interface Reply {
  answer: ProviderAnswer | null
  failure?: HttpClientError
}

type PurposefulRequest = HttpRequest & { purpose: CallPurpose }

export async function askProvider({ httpClient, limits }: ProviderConnection, url: string, request: PurposefulRequest): Promise<Reply> {
  try {
    const headers = { 'user-agent': 'doorward', ...request.headers }
    return { answer: await limits.run(request.purpose, () => callProvider(httpClient, url, { ...request, headers })) }
  } catch (failure) {
    if (failure instanceof HttpClientError) return { answer: null, failure }
    throw failure
  }
}

/** A redirect fails, because following it would send the secret to another server. Its body is not trusted. */
export function isSuccess({ status }: ProviderAnswer): boolean {
  return status >= 200 && status < 300
}

function tokenForm({ code, redirectUri, codeVerifier }: CodeExchange): URLSearchParams {
  const form = new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri: redirectUri })
  if (codeVerifier !== undefined) form.set('code_verifier', codeVerifier)
  return form
}

/** RFC 6749 section 5.1. Null: no fault. The text has no value of the response. */
function faultOf(raw: Record<string, unknown>, idTokenSuffices: boolean): string | null {
  const { access_token: accessToken, token_type: tokenType, id_token: idToken } = raw
  if (isPresent(idToken) && typeof idToken !== 'string') return 'id_token is not a string'
  if (!isPresent(accessToken) && idTokenSuffices && textOrNull(idToken) !== null) return null
  if (!isPresent(accessToken)) return 'access_token is missing: register this client for the authorization code grant'
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken)) return 'access_token has characters that no header can have'
  if (typeof tokenType !== 'string') return 'token_type is missing'
  if (tokenType.toLowerCase() === 'bearer') return null
  if (tokenType.toLowerCase() === 'dpop') return 'token_type is DPoP, which is not supported: register this client without DPoP'
  return 'token_type is not Bearer, and doorward supports no other type'
}

function readTokens(raw: Record<string, unknown>): OAuthTokens {
  return {
    accessToken: textOrNull(raw['access_token']) ?? '',
    tokenType: textOrNull(raw['token_type']) ?? 'Bearer',
    refreshToken: textOrNull(raw['refresh_token']),
    idToken: textOrNull(raw['id_token']),
    expiresIn: secondsOrNull(raw['expires_in']),
    scope: textOrNull(raw['scope']),
    raw,
  }
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Null: unusable. Some providers send the number as a string. */
function secondsOrNull(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0 ? Math.floor(seconds) : null
}

/**
 * RFC 9126 sections 2 and 4. Returns the URL for the browser.
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
