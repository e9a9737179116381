import type { Request } from 'express'
import type { Settings } from '../config/every-setting'
import { InvalidTokenError } from '../errors'
import { readCookie } from '../http/cookies'
import type { CookieSite } from '../http/doubled-cookies'

// RFC 6750 section 2.1: the scheme in any case, blanks, and a text. Whether that text is a token is checked by the verifier, which accepts
// only three parts of base64url.
const bearer = /^Bearer +([^ ].*)$/i
// RFC 9110 section 5.6.2: the end of the scheme's name, whatever follows.
const bearerScheme = /^Bearer(?![\w!#$%&'*+.^`|~-])/i

export type Credential = { token: string; from: 'header' | 'cookie' }

type DeliverySite = CookieSite & { readonly settings: Pick<Settings, 'tokenDelivery' | 'accessCookieName' | 'sessionCookieName'> }

/**
 * Returns the access token of a request: from the header, or else from the cookie if the delivery includes cookies. It never reads the query
 * or the body (RFC 6750 section 2.3). In delivery `session` it returns the value of the session cookie. Null: none was sent.
 * @throws InvalidTokenError for a Bearer header without a token, for an Authorization header sent twice, and in delivery `session` for every
 * Bearer header
 */
export function readCredential(site: DeliverySite, req: Request): Credential | null {
  const { tokenDelivery, accessCookieName, sessionCookieName } = site.settings
  const token = bearerToken(req)
  if (token !== null && tokenDelivery === 'session') throw new InvalidTokenError({ reason: 'bearer_in_session_delivery' })
  if (token !== null) return { token, from: 'header' }
  if (tokenDelivery === 'bearer') return null
  const cookie = readCookie(site, req, tokenDelivery === 'session' ? sessionCookieName : accessCookieName)
  return cookie === null ? null : { token: copyOf(cookie), from: 'cookie' }
}

/** Copies a text. A token may be kept longer than its request, and a part of a long header would keep the whole header in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8')
}

function bearerToken(req: Request): string | null {
  const header = req.headers.authorization
  if (header === undefined) return null
  if (isSentTwice(req.rawHeaders ?? [])) throw new InvalidTokenError({ reason: 'header_sent_twice' })
  // The usual form, which needs no regular expression.
  if (header.startsWith('Bearer ') && header.length > 7 && header[7] !== ' ') return header.slice(7)
  if (!bearerScheme.test(header)) return null
  const token = bearer.exec(header)?.[1]
  if (token === undefined) throw new InvalidTokenError({ reason: 'no_token_in_header' })
  return copyOf(token)
}

/** Returns true if Authorization was sent twice. Node keeps only the first, but a proxy in front of us may have read another. */
function isSentTwice(rawHeaders: readonly string[]): boolean {
  let times = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 13 && name.toLowerCase() === 'authorization') times += 1
  }
  return times > 1
}
