import { timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { ConfigurationError, UnauthorizedError } from '../core/errors'
import { isAnswerable } from '../http/answerable'
import { onlyValue } from '../http/header-values'
import { isObject, refuseUnknownOptions } from '../options'
import { refusing } from './refusing'
import { checkSecret, digestOf } from './shared-secret'

export interface InternalTokenOptions {
  /** At least 32 bytes of visible ASCII. To replace a token, pass a list. The guard accepts every token of the list. */
  token: string | readonly string[]
}

/**
 * Protects calls between services of one owner. The header `X-Token` must contain one of the tokens. The guard compares in constant time.
 * If the header is missing, wrong or sent twice, the guard sends 401 UNAUTHORIZED.
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

/** Compares every token, so that the time does not reveal which token matched. */
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

/** Rejects a token that a header cannot contain, because no request could send such a token. */
function sendable(token: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(token)) return token
  throw new ConfigurationError('requireInternalToken: token must be ASCII without control characters or blanks at its ends.')
}
