import type { Request } from 'express'
import type { Settings } from '../config/every-setting'
import { InvalidTokenError } from '../errors'
import { readCookie } from '../http/cookies'
import type { CookieSite } from '../http/doubled-cookies'

// RFC 6750 section 2.1: the scheme in any case, blanks, and what is to be a token. Whether it is one, of which characters,
// is the verifier's to say: it takes nothing but three parts of base64url.
const bearer = /^Bearer +([^ ].*)$/i
// RFC 9110 section 5.6.2: where the scheme's name ends, whatever follows it.
const bearerScheme = /^Bearer(?![\w!#$%&'*+.^`|~-])/i

export type Credential = { token: string; from: 'header' | 'cookie' }

type DeliverySite = CookieSite & { readonly settings: Pick<Settings, 'tokenDelivery' | 'accessCookieName' | 'sessionCookieName'> }

/**
 * The access token of a request: the header, and where delivery includes cookies the cookie behind it. Never the query
 * or the body (RFC 6750 section 2.3). In delivery `session` the value of the session cookie. Null: none was sent.
 * @throws InvalidTokenError for a Bearer header without a token, for an Authorization header sent twice, and in delivery `session` for every
 *   Bearer header
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

/** A token is kept longer than its request; cut out of a long header it would keep all of that header with it. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8')
}

function bearerToken(req: Request): string | null {
  const header = req.headers.authorization
  if (header === undefined) return null
  if (isSentTwice(req.rawHeaders ?? [])) throw new InvalidTokenError({ reason: 'header_sent_twice' })
  // As nearly everybody writes it, read without the expressions below.
  if (header.startsWith('Bearer ') && header.length > 7 && header[7] !== ' ') return header.slice(7)
  if (!bearerScheme.test(header)) return null
  const token = bearer.exec(header)?.[1]
  if (token === undefined) throw new InvalidTokenError({ reason: 'no_token_in_header' })
  return copyOf(token)
}

/** Node keeps the first of several Authorization headers and drops the others; a proxy before us may have read another. */
function isSentTwice(rawHeaders: readonly string[]): boolean {
  let times = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 13 && name.toLowerCase() === 'authorization') times += 1
  }
  return times > 1
}
