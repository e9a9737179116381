import type { Request } from 'express'
import type { Settings } from '../config/settings'
import { InvalidTokenError } from '../errors'
import { readCookie } from '../http/cookies'

/** RFC 6750 section 2.1: the scheme in any case, then b64token. */
const bearer = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i
// RFC 9110 section 5.6.2: where the scheme's name ends, whatever follows it.
const bearerScheme = /^Bearer(?![\w!#$%&'*+.^`|~-])/i

export type Credential = { token: string; from: 'header' | 'cookie' }

/**
 * The access token of a request: the header, and where delivery includes cookies the cookie behind it. Never the query
 * or the body (RFC 6750 section 2.3). Null: none was sent.
 * @throws InvalidTokenError for a Bearer header that is not one token, and for an Authorization header sent twice
 */
export function readCredential(settings: Settings, req: Request): Credential | null {
  const token = bearerToken(req)
  if (token !== null) return { token, from: 'header' }
  const cookie = settings.tokenDelivery === 'bearer' ? null : readCookie(req, settings.accessCookieName)
  return cookie === null ? null : { token: cookie, from: 'cookie' }
}

function bearerToken(req: Request): string | null {
  const header = req.headers.authorization
  if (header === undefined) return null
  if (sentTwice(req)) throw new InvalidTokenError()
  if (!bearerScheme.test(header)) return null
  const token = bearer.exec(header)?.[1]
  if (token === undefined) throw new InvalidTokenError()
  return token
}

/** Node keeps the first of several Authorization headers and drops the others; a proxy before us may have read another. */
function sentTwice(req: Request): boolean {
  return req.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization').length > 1
}
