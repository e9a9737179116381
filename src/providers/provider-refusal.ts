import { OAuthError, OAuthProviderUnavailableError } from '../core/errors'
import { withOwnMessage } from '../core/logger'
import { isPlainObject, type ProviderAnswer, parseJsonObject } from './provider-request'

const MAX_BODY_BYTES = 1024
const REMOVED = '[removed]'

/** `details.body` is for a person, at most 1 KiB, without our `secrets`, tokens and JWTs. No response: status and body are null. */
export function providerRefusal(
  provider: string,
  answer: ProviderAnswer | null,
  secrets: readonly (string | undefined)[],
  cause?: Error,
): OAuthError {
  const body = answer && readableBody(answer.body, secrets)
  return new OAuthError({ details: { provider, status: answer?.status ?? null, body }, cause: answer ? said(answer) : cause })
}

/** A 401 of the token endpoint is always about our credentials (RFC 6749 section 5.2). */
export function tokenRefusal(
  provider: string,
  answer: ProviderAnswer | null,
  secrets: readonly (string | undefined)[],
  { cause, isEncoded = false }: { cause?: Error | undefined; isEncoded?: boolean | undefined },
): OAuthError {
  const { details } = providerRefusal(provider, answer, secrets)
  return new OAuthError({
    details,
    cause: cause ?? (answer ? said(answer, { isCredentialStatus: answer.status === 401, isEncoded }) : undefined),
  })
}

/** `fault` says what is wrong, without a value of the response. */
export function unusableTokens(fault: string | null): Error {
  return withOwnMessage(new Error(`token response refused: ${fault}`))
}

function said({ status, body }: ProviderAnswer, client = { isCredentialStatus: false, isEncoded: false }): ProviderSaidNo {
  return new ProviderSaidNo(parseJsonObject(body)?.['error'], { status, ...client })
}

/** No response came, or no usable response. The client may try again. */
export function providerUnavailable(provider: string, answer: ProviderAnswer | null, cause?: Error): OAuthProviderUnavailableError {
  return new OAuthProviderUnavailableError({ details: { provider, status: answer?.status ?? null, body: null }, cause })
}

/** The provider itself refused no request. `reason` is for logs, and never contains a value of the token. */
export function unusableIdentity(provider: string, reason: string): OAuthError {
  return new OAuthError({ details: { provider, status: null, body: null }, cause: withOwnMessage(new Error(reason)) })
}

// The time of the search for secrets grows with the number of bytes. The error shows fewer bytes.
const MAX_READ_BYTES = 16 * 1024

function readableBody(bytes: Buffer, secrets: readonly (string | undefined)[]): string {
  const text = bytes.toString('utf8', 0, MAX_READ_BYTES)
  const spelled = [...secrets, ...tokensIn(parseJsonObject(bytes))].flatMap(spellings).sort(longestFirst)
  const mask = maskOf(spelled)
  const masked = maskInsideJson(mask(text), mask)
  // The last bytes can begin a secret, which no mask finds. So as many as the longest secret has are removed.
  const presented = bytes.length > MAX_READ_BYTES ? masked.slice(0, -(spelled[0]?.length ?? 0) || undefined) : masked
  return cutBody(escapeControls(presented))
}

/** One pass, so that no replacement is searched again. */
function maskOf(spelled: readonly string[]): (text: string) => string {
  const secret =
    spelled.length === 0 ? null : new RegExp(spelled.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g')
  return (text) => maskPatterns(secret ? text.replace(secret, REMOVED) : text)
}

/** Plain, percent-encoded, form-encoded, in JSON, in HTML, in base64 without padding. */
function spellings(secret: string | undefined): string[] {
  if (!secret) return []
  const form = new URLSearchParams({ s: secret }).toString().slice(2)
  const html = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
  const json = JSON.stringify(secret).slice(1, -1)
  const unpadded = secret.replace(/(?<=[^=])={1,2}$/, '')
  return [...new Set([secret, encodeURIComponent(secret), form, json, json.replaceAll('/', '\\/'), html, unpadded])]
}

const longestFirst = (left: string, right: string) => right.length - left.length
const TOKEN_MEMBERS = ['access_token', 'refresh_token', 'id_token', 'client_secret', 'code_verifier']

function tokensIn(answer: Record<string, unknown> | null): string[] {
  return TOKEN_MEMBERS.flatMap((name) => {
    const value = answer?.[name]
    // A shorter value is not a token. No standard has a limit, so this is our choice.
    return typeof value === 'string' && value.length >= 8 ? [value] : []
  })
}

function maskPatterns(text: string): string {
  return text
    .replace(DOTTED_RUN, (run) => (looksLikeJwt(run) ? REMOVED : run))
    .replace(MEMBER_IN_JSON, `$1"${REMOVED}"`)
    .replace(MEMBER_IN_FORM, `$1${REMOVED}`)
}

// With the lookbehind, a match can start only at the start of a run, so the time grows linearly.
const DOTTED_RUN = /(?<![\w.-])[\w-]+(?:\.[\w-]*)+/g

function looksLikeJwt(run: string): boolean {
  return run.includes('eyJ') || run.split('.').filter((part) => part.length >= 16).length >= 3
}

// Patterns and no parser, because the response can be invalid or cut short. `code` is not masked: it can be an error code.
const SECRET_MEMBER = '(?:access_token|refresh_token|id_token|client_secret|code_verifier)'
const MEMBER_IN_JSON = new RegExp(`("${SECRET_MEMBER}"\\s*:\\s*)(?:"(?:[^"\\\\]|\\\\.)*(?:"|$)|[^",}\\s]+)`, 'g')
const MEMBER_IN_FORM = new RegExp(`(\\b${SECRET_MEMBER}=)[^&\\s<"']*`, 'g')

/** JSON can spell any character as \uXXXX, so its decoded strings are masked too. If nothing was masked, the text stays unchanged. */
function maskInsideJson(text: string, mask: (text: string) => string): string {
  const parsed = parseJsonObject(Buffer.from(text))
  if (!parsed) return text
  const masked = JSON.stringify(parsed, (_name, value: unknown) => maskValue(value, mask))
  return masked === JSON.stringify(parsed) ? text : masked
}

function maskValue(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === 'string') return mask(value)
  if (!isPlainObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [mask(name), member]))
}

/** Control characters and direction overrides can do harm in a terminal or a log. */
function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
  })
}

/** At most 1 KiB of UTF-8, cut between characters. */
export function cutBody(text: string): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= MAX_BODY_BYTES) return text
  // Moves back to the first byte of a character: the other bytes are 10xxxxxx.
  let end = MAX_BODY_BYTES
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}

/** For logs. Contains the provider's error code and advice for the operator. */
export class ProviderSaidNo extends Error {
  override readonly name = 'ProviderSaidNo'
  /** RFC 6749 section 5.2. `other`: the value is not an error code. Null: the response has no `error`. */
  readonly code: string | null
  /** Our id, our secret, the way we send them, or our redirect URI is wrong. Only the operator can correct this. */
  readonly refusesClient: boolean
  /** `client_secret_basic` sent our id or secret with characters that had to be encoded. */
  readonly isEncoded: boolean

  /** @param isCredentialStatus true: the status alone says that our credentials were refused */
  constructor(
    error: unknown,
    { status, isCredentialStatus, isEncoded = false }: { status: number | null; isCredentialStatus: boolean; isEncoded?: boolean },
  ) {
    const code = errorCode(error)
    const refusesClient = isCredentialStatus || clientErrors.includes(error)
    super(refusesClient ? 'The provider refused this application.' : `The provider refused: ${adviceOn(code, status)}`)
    this.code = code
    this.refusesClient = refusesClient
    this.isEncoded = isEncoded
    withOwnMessage(this)
  }
}

const clientErrors: readonly unknown[] = ['invalid_client', 'unauthorized_client', 'redirect_uri_mismatch', 'incorrect_client_credentials']

/** Safe to log. Null: the response has no `error`. */
export function errorCode(error: unknown): string | null {
  if (error === undefined || error === null) return null
  return typeof error === 'string' && /^[A-Za-z0-9_.:-]{1,64}$/.test(error) ? error : 'other'
}

const advice: Readonly<Record<string, string>> = {
  invalid_grant:
    'invalid_grant: the code was used or has expired, or the redirect URI or PKCE verifier does not belong to the login. If every login fails like this, check redirectUri and pkce',
  invalid_request: 'invalid_request: check clientAuthentication, pkce and redirectUri, and the description of the error',
  invalid_request_uri: 'invalid_request_uri: the pushed request has expired; begin the login anew',
  invalid_scope: 'invalid_scope: check scopes of this client, here and at the provider',
  insufficient_scope: 'insufficient_scope: add the scope that the endpoint asks for to scopes',
  invalid_token: 'invalid_token: the endpoint refuses this access token; check that userinfoUrl belongs to this provider',
  unauthorized_client: 'unauthorized_client: allow the authorization code grant for this client at the provider',
  unsupported_grant_type: 'unsupported_grant_type: allow the authorization code grant for this client at the provider',
  unsupported_response_type: 'unsupported_response_type: allow response type code for this client at the provider',
  bad_verification_code: 'bad_verification_code: the code was used or has expired',
  invalid_dpop_proof: 'invalid_dpop_proof: doorward does not support DPoP; register this client without DPoP at the provider',
  use_dpop_nonce: 'use_dpop_nonce: doorward does not support DPoP; register this client without DPoP at the provider',
  server_error: 'server_error: the provider fails; look at its own log, and try again',
  temporarily_unavailable: 'temporarily_unavailable: the provider fails; try again',
}

export function adviceOn(code: string | null, status: number | null): string {
  if (code !== null) return (Object.hasOwn(advice, code) && advice[code]) || `${code}: look it up in the documentation of the provider`
  if (status === null || status >= 500) return 'it gave no reason; look at its own log, and try again'
  if (status >= 400) return 'it gave no reason; check the address of the endpoint, and what this client may do there'
  if (status >= 300) return 'doorward does not follow a redirect; use the address that the redirect leads to'
  return 'the answer is not a JSON object as the standard requires; check the address of the endpoint'
}
