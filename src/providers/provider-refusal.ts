import { OAuthError, OAuthProviderUnavailableError } from '../errors'
import { withOwnMessage } from '../logger'
import { isPlainObject, type ProviderAnswer, parseJsonObject } from './provider-request'
import { ProviderSaidNo } from './provider-said-no'

const MAX_BODY_BYTES = 1024
const REMOVED = '[removed]'

/**
 * 502 OAUTH_ERROR. `details.body` is the provider's answer for a person to read, after everything that could be a secret
 * is gone: what we sent (`secrets`), what the answer calls a token, whatever looks like a JWT. At most 1 KiB.
 * Without an answer, status and body are null.
 */
export function providerRefusal(
  provider: string,
  answer: ProviderAnswer | null,
  secrets: readonly (string | undefined)[],
  cause?: Error,
): OAuthError {
  const body = answer && readableBody(answer.body, secrets)
  return new OAuthError({ details: { provider, status: answer?.status ?? null, body }, cause: answer ? said(answer) : cause })
}

/** The same of a token endpoint, whose 401 is about our credentials, whatever its body says (RFC 6749 section 5.2). */
export function tokenRefusal(
  provider: string,
  answer: ProviderAnswer | null,
  secrets: readonly (string | undefined)[],
  cause?: Error,
): OAuthError {
  const { details } = providerRefusal(provider, answer, secrets)
  return new OAuthError({ details, cause: answer ? said(answer, { isCredentialStatus: answer.status === 401 }) : cause })
}

function said({ status, body }: ProviderAnswer, { isCredentialStatus } = { isCredentialStatus: false }): ProviderSaidNo {
  return new ProviderSaidNo(parseJsonObject(body)?.['error'], { status, isCredentialStatus })
}

/** 502 OAUTH_PROVIDER_UNAVAILABLE, which may be tried again: there was no answer, or none that says anything. */
export function providerUnavailable(provider: string, answer: ProviderAnswer | null, cause?: Error): OAuthProviderUnavailableError {
  return new OAuthProviderUnavailableError({ details: { provider, status: answer?.status ?? null, body: null }, cause })
}

/** Something other than an HTTP answer was refused: an id_token, a profile. `reason` is for logs and never holds a value. */
export function unusableIdentity(provider: string, reason: string): OAuthError {
  return new OAuthError({ details: { provider, status: null, body: null }, cause: withOwnMessage(new Error(reason)) })
}

// Read far past what is shown, and no further: everything below is linear in it, whatever the provider wrote.
const MAX_READ_BYTES = 16 * 1024

function readableBody(bytes: Buffer, secrets: readonly (string | undefined)[]): string {
  const text = bytes.toString('utf8', 0, MAX_READ_BYTES)
  const spelled = [...secrets, ...tokensIn(parseJsonObject(bytes))].flatMap(spellings).sort(longestFirst)
  const mask = maskOf(spelled)
  const masked = maskInsideJson(mask(text), mask)
  // Where the reading stopped, half a secret may stand.
  const shown = bytes.length > MAX_READ_BYTES ? masked.slice(0, -(spelled[0]?.length ?? 0) || undefined) : masked
  return cut(escapeControls(shown))
}

/** All secrets in one pass: what has been put in their place is not read again. */
function maskOf(spelled: readonly string[]): (text: string) => string {
  const secret =
    spelled.length === 0 ? null : new RegExp(spelled.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g')
  return (text) => maskPatterns(secret ? text.replace(secret, REMOVED) : text)
}

/** The ways one secret may stand in a text: as it is, percent-encoded, form-encoded, in JSON, in HTML. */
function spellings(secret: string | undefined): string[] {
  if (!secret) return []
  const form = new URLSearchParams({ s: secret }).toString().slice(2)
  const html = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
  const json = JSON.stringify(secret).slice(1, -1)
  return [...new Set([secret, encodeURIComponent(secret), form, json, json.replaceAll('/', '\\/'), html])]
}

const longestFirst = (left: string, right: string) => right.length - left.length
const TOKEN_MEMBERS = ['access_token', 'refresh_token', 'id_token', 'client_secret', 'code_verifier']

function tokensIn(answer: Record<string, unknown> | null): string[] {
  return TOKEN_MEMBERS.flatMap((name) => {
    const value = answer?.[name]
    // A letter is no token, and nothing of ours says how short the provider's own may be.
    return typeof value === 'string' && value.length >= 8 ? [value] : []
  })
}

function maskPatterns(text: string): string {
  return text
    .replace(DOTTED_RUN, (run) => (looksLikeJwt(run) ? REMOVED : run))
    .replace(MEMBER_IN_JSON, `$1"${REMOVED}"`)
    .replace(MEMBER_IN_FORM, `$1${REMOVED}`)
}

// The lookbehind keeps this linear: a run is tried from its start only.
const DOTTED_RUN = /(?<![\w.-])[\w-]+(?:\.[\w-]*)+/g

function looksLikeJwt(run: string): boolean {
  return run.includes('eyJ') || run.split('.').filter((part) => part.length >= 16).length >= 3
}

// Also in an answer that is not valid JSON or was cut short, hence patterns. `code` alone may be an error code: kept.
const SECRET_MEMBER = '(?:access_token|refresh_token|id_token|client_secret|code_verifier)'
const MEMBER_IN_JSON = new RegExp(`("${SECRET_MEMBER}"\\s*:\\s*)(?:"(?:[^"\\\\]|\\\\.)*(?:"|$)|[^",}\\s]+)`, 'g')
const MEMBER_IN_FORM = new RegExp(`(\\b${SECRET_MEMBER}=)[^&\\s<"']*`, 'g')

/** JSON can spell any character as \uXXXX: mask what the strings mean, too. The text is kept where that changes nothing. */
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

/** Control characters and direction overrides: harmless on a wire, not in a terminal or a log. */
function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
  })
}

function cut(text: string): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= MAX_BODY_BYTES) return text
  // Back off to the start of a character: continuation bytes are 10xxxxxx.
  let end = MAX_BODY_BYTES
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}
