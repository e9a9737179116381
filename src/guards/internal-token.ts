import { timingSafeEqual } from 'node:crypto'
import type { RequestHandler } from 'express'
import { ConfigurationError, UnauthorizedError } from '../errors'
import { onlyValue } from '../http/header-values'
import { isObject, refuseUnknownOptions } from '../options'
import { refusing } from './refusing'
import { checkSecret, digestOf } from './shared-secret'

export interface InternalTokenOptions {
  /** At least 32 bytes of visible ASCII. Pass a list to replace a token: each of them is accepted. */
  token: string | readonly string[]
}

/**
 * Protects calls between services of one owner. The header `X-Token` must be one of the tokens, compared in constant time. Missing, wrong or
 * sent twice: 401 UNAUTHORIZED.
 * @throws ConfigurationError for an empty, short, unsendable or placeholder token
 */
export function requireInternalToken(options: InternalTokenOptions): RequestHandler {
  const known = tokensOf(options).map(digestOf)
  return refusing((req, res) => {
    const sent = onlyValue(req, 'x-token')
    if (sent !== null && isAmong(known, digestOf(sent))) return
    res.setHeader('WWW-Authenticate', 'X-Token') // a 401 must name its scheme (RFC 9110 section 11.6.1), which is not Bearer here
    throw new UnauthorizedError()
  })
}

/** Compares every token, so that the time does not reveal which one matched. */
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

/** Rejects a token that a header cannot contain, because no request could send it. */
function sendable(token: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(token)) return token
  throw new ConfigurationError('requireInternalToken: token must be ASCII without control characters or blanks at its ends.')
}
