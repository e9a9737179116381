import type { CallPurpose, HttpClient, HttpRequest } from '../http-client'
import { HttpClientError } from '../http-client'
import type { Authenticate } from './client-authentication'
import { type CallLimits, limitInFlight } from './in-flight'
import type { CodeExchange, OAuthTokens } from './provider-client'
import { providerRefusal, providerUnavailable, tokenRefusal } from './provider-refusal'
import { callProvider, type ProviderAnswer, parseJsonList, parseJsonObject } from './provider-request'

/** What speaking to one provider takes. */
export interface ProviderConnection {
  readonly providerName: string
  readonly clientId: string
  /** Empty where there is none. Shown to nobody, whichever endpoint repeats it. */
  readonly clientSecret: string
  /** Puts the credentials of this application into a form. */
  readonly authenticate: Authenticate
  readonly tokenUrl: string
  readonly httpClient: HttpClient
  readonly limits: CallLimits
}

/** What one client of the library needs to speak; each has a limit of its own, whosever HTTP client it was given. */
export function connectTo(known: Omit<ProviderConnection, 'limits'>): ProviderConnection {
  const limits = limitInFlight(() => new HttpClientError('TOO_MANY_IN_FLIGHT', 'Too many calls to this provider are under way.'))
  return Object.freeze({ ...known, limits })
}

/**
 * RFC 6749 section 4.1.3. Sent once, never again: a code that reached the provider is burnt, whatever came back.
 *
 * @throws OAuthError unless the answer is 2xx and a JSON object with a bearer access token and no `error`
 */
export async function requestTokens(connection: ProviderConnection, input: CodeExchange): Promise<OAuthTokens> {
  const { request, secrets } = connection.authenticate(tokenForm(input))
  const { answer, failure } = await askProvider(connection, connection.tokenUrl, { ...request, purpose: 'callback' })
  const tokens = answer && isSuccess(answer) ? readTokens(parseJsonObject(answer.body)) : null
  if (!tokens) throw tokenRefusal(connection.providerName, answer, [...secrets, input.code, input.codeVerifier], failure)
  return tokens
}

/**
 * RFC 6750 section 2.1: the token travels in the Authorization header only.
 *
 * @throws OAuthError unless the answer is 2xx and a JSON object without `error`; OAuthProviderUnavailableError where there
 *   was no answer to read and the token is in hand, so that the same may be tried again
 */
export function getWithBearer(connection: ProviderConnection, url: string, tokens: OAuthTokens): Promise<Record<string, unknown>> {
  return read(connection, url, tokens, readObject)
}

function readObject(body: Buffer): Record<string, unknown> | null {
  const content = parseJsonObject(body)
  return content && !isPresent(content['error']) ? content : null
}

/** RFC 7515 section 3.1, or the five parts of RFC 7516 section 3.1. */
function readCompact(body: Buffer): string | null {
  const text = body.toString('latin1').trim()
  return /^[\w-]+(?:\.[\w-]*){2}(?:\.[\w-]*\.[\w-]*)?$/.test(text) ? text : null
}

/**
 * Does the same for an endpoint that may also respond with a JWT. Returns the JWT unverified: the caller has to verify it.
 *
 * @throws as `getWithBearer`
 */
export function getClaimsWithBearer(
  connection: ProviderConnection,
  url: string,
  tokens: OAuthTokens,
): Promise<Record<string, unknown> | string> {
  return read(connection, url, tokens, (body) => readObject(body) ?? readCompact(body), 'application/json, application/jwt')
}

/**
 * The same for an endpoint that answers with a list.
 *
 * @throws OAuthError unless the answer is 2xx and a JSON array of objects; OAuthProviderUnavailableError as above
 */
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

/** A provider that was reached, and refused: asking again changes nothing. */
function saysNo(answer: ProviderAnswer | null): boolean {
  if (!answer) return false
  return (answer.status >= 400 && answer.status < 500) || (isSuccess(answer) && parseJsonObject(answer.body) !== null)
}

/** An answer, or why there is none that may be read. */
export interface Reply {
  answer: ProviderAnswer | null
  failure?: HttpClientError
}

/** A request that says what it is for. */
export type PurposefulRequest = HttpRequest & { purpose: CallPurpose }

export async function askProvider({ httpClient, limits }: ProviderConnection, url: string, request: PurposefulRequest): Promise<Reply> {
  try {
    const headers = { 'user-agent': 'doorward', ...request.headers }
    return { answer: await limits.run(request.purpose, () => callProvider(httpClient, url, { ...request, headers })) }
  } catch (failure) {
    if (failure instanceof HttpClientError) return { answer: null, failure }
    throw failure
  }
}

/** A redirect is not followed and its body not believed: it would carry the secret, or our trust, elsewhere. */
export function isSuccess({ status }: ProviderAnswer): boolean {
  return status >= 200 && status < 300
}

function tokenForm({ code, redirectUri, codeVerifier }: CodeExchange): URLSearchParams {
  const form = new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri: redirectUri })
  if (codeVerifier !== undefined) form.set('code_verifier', codeVerifier)
  return form
}

/** RFC 6749 section 5.1; null when the answer is not what it says. */
function readTokens(raw: Record<string, unknown> | null): OAuthTokens | null {
  if (!raw || isPresent(raw['error'])) return null
  const { access_token: accessToken, token_type: tokenType, id_token: idToken } = raw
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken)) return null
  if (typeof tokenType !== 'string' || tokenType.toLowerCase() !== 'bearer') return null
  if (isPresent(idToken) && typeof idToken !== 'string') return null
  return {
    accessToken,
    tokenType,
    refreshToken: textOrNull(raw['refresh_token']),
    idToken: textOrNull(idToken),
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

/** Some providers send the number as a string. */
function secondsOrNull(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0 ? Math.floor(seconds) : null
}
