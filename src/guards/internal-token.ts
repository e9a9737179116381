import { createHash, timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { isPlaceholderSecret } from '../core/config/settings-schema'
import { ConfigurationError, UnauthorizedError } from '../core/errors'
import { isAnswerable } from '../http/routes'
import { onlyValue } from '../http/send'
import { isObject, refuseUnknownOptions } from '../options'
import { refusing } from './refusing'

export interface InternalTokenOptions {
  /** At least 32 bytes of visible ASCII. To replace a token, pass a list: the guard accepts every token of it. */
  token: string | readonly string[]
}

/**
 * Protects calls between services of one owner. The header `X-Token` must contain one of the tokens, compared in constant time. If it is
 * missing, wrong or sent twice, the guard sends 401 UNAUTHORIZED.
 * @throws ConfigurationError for a token that is empty, short, a placeholder, or not possible in a header
 */
export function requireInternalToken(options: InternalTokenOptions): RequestHandler {
  const known = tokensOf(options).map(digestOf)
  return refusing((req, res) => {
    const sent = onlyValue(req, 'x-token')
    if (sent !== null && isAmong(known, digestOf(sent))) return
    // A 401 response must name its scheme (RFC 9110 section 11.6.1). This guard does not use Bearer.
    if (isAnswerable(res)) res.setHeader('WWW-Authenticate', 'X-Token')
    throw new UnauthorizedError()
  })
}

/** Every token, so that the time does not reveal which one matched. */
function isAmong(known: readonly Buffer[], sent: Buffer): boolean {
  return known.reduce((found, token) => timingSafeEqual(token, sent) || found, false)
}

function tokensOf(options: InternalTokenOptions): readonly string[] {
  if (!isObject(options)) throw new ConfigurationError('requireInternalToken() needs options: { token }.')
  refuseUnknownOptions('requireInternalToken', options, ['token'])
  const tokens: readonly unknown[] = [options.token].flat()
  if (tokens.length === 0) throw new ConfigurationError('requireInternalToken: token must hold at least one token.')
  return tokens.map((token) => sendable(checkSecret('requireInternalToken: token', token)))
}

/** No request could send a token that a header cannot contain. */
function sendable(token: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(token)) return token
  throw new ConfigurationError('requireInternalToken: token must be ASCII without control characters or blanks at its ends.')
}

/** @throws ConfigurationError with the name of the option, never with its value */
function checkSecret(option: string, secret: unknown): string {
  if (typeof secret === 'string' && Buffer.byteLength(secret, 'utf8') >= 32 && !isPlaceholderSecret(secret)) return secret
  throw new ConfigurationError(
    `${option} must be a random secret of at least 32 bytes and no placeholder; \`openssl rand -base64 48\` makes one.`,
  )
}

/** @throws ConfigurationError with the position in the list */
export function checkSecrets(option: string, secrets: unknown): readonly string[] {
  if (!Array.isArray(secrets)) return [checkSecret(option, secrets)]
  const checked = Array.from(secrets, (secret: unknown, place) => checkSecret(`${option} ${place + 1}`, secret))
  if (checked.length > 0 && new Set(checked).size === checked.length) return checked
  throw new ConfigurationError(`${option} must be one secret, or a list of at least one, each different.`)
}

/** In constant time. Digests, because timingSafeEqual needs inputs of equal length. */
export function isSameText(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other))
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest()
}
