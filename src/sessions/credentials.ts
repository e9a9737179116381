import type { Request } from 'express'
import type { Settings } from '../core/config/every-setting'
import { InvalidTokenError } from '../core/errors'
import { readCookie } from '../http/cookies'
import type { CookieSite } from '../http/doubled-cookies'

// RFC 6750 section 2.1: the scheme in any letter case, then spaces, then a text. The verifier later checks the text: a token has exactly
// three parts of base64url.
const bearer = /^Bearer +([^ ].*)$/i
// RFC 9110 section 5.6.2 lists the characters of a scheme's name. The name is exactly `Bearer` if none of these characters follows.
const bearerScheme = /^Bearer(?![\w!#$%&'*+.^`|~-])/i

export type AccessCredential = { token: string; from: 'header' | 'cookie' }

type DeliverySite = CookieSite & { readonly settings: Pick<Settings, 'tokenDelivery' | 'accessCookieName' | 'sessionCookieName'> }

/**
 * Returns the access token of a request. The function reads the header first, and then the cookie if `tokenDelivery` includes cookies. The
 * function never reads the query or the body (RFC 6750 section 2.3). With `tokenDelivery: 'session'`, the function returns the value of the
 * session cookie. Returns null if the request has no credential.
 * @throws InvalidTokenError for a Bearer header without a token, and for a request with two Authorization headers
 * @throws InvalidTokenError for every Bearer header with `tokenDelivery: 'session'`
 */
export function readCredential(site: DeliverySite, req: Request): AccessCredential | null {
  const { tokenDelivery, accessCookieName, sessionCookieName } = site.settings
  const token = bearerToken(req)
  if (token !== null && tokenDelivery === 'session') throw new InvalidTokenError({ reason: 'bearer_in_session_delivery' })
  if (token !== null) return { token, from: 'header' }
  if (tokenDelivery === 'bearer') return null
  const cookie = readCookie(site, req, tokenDelivery === 'session' ? sessionCookieName : accessCookieName)
  return cookie === null ? null : { token: copyOf(cookie), from: 'cookie' }
}

/** Returns true for an `Authorization` header of the scheme Bearer, with any token or none. */
export function hasBearer({ headers }: Request): boolean {
  return bearerScheme.test(headers.authorization ?? '')
}

/**
 * Copies a text. The library can keep a token longer than its request. Without the copy, the token would keep the whole header in memory.
 */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8')
}

function bearerToken(req: Request): string | null {
  const header = req.headers.authorization
  if (header === undefined) return null
  if (isSentTwice(req.rawHeaders ?? [])) throw new InvalidTokenError({ reason: 'header_sent_twice' })
  // The usual form needs no regular expression.
  if (header.startsWith('Bearer ') && header.length > 7 && header[7] !== ' ') return header.slice(7)
  if (!bearerScheme.test(header)) return null
  const token = bearer.exec(header)?.[1]
  if (token === undefined) throw new InvalidTokenError({ reason: 'no_token_in_header' })
  return copyOf(token)
}

/**
 * Returns true if the request has two Authorization headers. Node keeps only the first header, but a proxy before the app may have read the
 * second header.
 */
function isSentTwice(rawHeaders: readonly string[]): boolean {
  let times = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 13 && name.toLowerCase() === 'authorization') times += 1
  }
  return times > 1
}
