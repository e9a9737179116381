import { createHmac, type KeyObject, randomBytes } from 'node:crypto'
import type { Request } from 'express'
import { ConfigurationError } from '../../errors'
import { countCookies, readCookie } from '../../http/cookies'
import { deriveKeyList, findKey } from '../../keys'
import { checkSecrets, isSameText } from '../shared-secret'

/** Names the session of a request; null or undefined: there is none. */
export type SessionReader = (req: Request) => string | null | undefined

export interface SignerOptions {
  /** At least 32 bytes. A list while one is being replaced: the first signs, all verify. */
  secret?: string | readonly string[]
  /** In place of the two cookies. */
  session?: SessionReader
  /** As in the router's settings; default `auth_session`. */
  sessionCookieName?: string
  /** As in the router's settings; default `access_token`. */
  accessCookieName?: string
}

export interface TokenSigner {
  mint(req: Request): string
  /** Signed by us, and for no other session than the request's. */
  accepts(token: string, req: Request): boolean
}

/**
 * The signed double submit (OWASP, Cross-Site Request Forgery Prevention): `random.session.mac`. A sibling host that plants a
 * cookie can only plant a token of its own session, which is refused in anybody else's. Where a request shows no session there is nothing to
 * ride on, so any token of ours will do: an access cookie that ran out must end in 401, not in 403.
 */
export function tokenSigner(where: string, options: SignerOptions): TokenSigner | null {
  const { secret, sessionCookieName = 'auth_session', accessCookieName = 'access_token' } = options
  const { session = sessionOf(sessionCookieName, accessCookieName) } = options
  if (![sessionCookieName, accessCookieName].every((name) => typeof name === 'string' && name !== ''))
    throw new ConfigurationError(`${where}: sessionCookieName and accessCookieName must be the names of cookies, as the router has them.`)
  if (typeof session !== 'function') throw new ConfigurationError(`${where}: session must be a function of a request that returns text.`)
  if (secret === undefined) {
    if (options.session) throw new ConfigurationError(`${where}: session is what signed tokens are bound to; pass \`secret\` too.`)
    return null
  }
  const keys = deriveKeyList(checkSecrets(`${where}: secret`, secret), 'csrf')

  return {
    mint(req) {
      const random = randomBytes(32).toString('base64url')
      return sign(keys[0], random, bindingOf(keys[0], session(req)))
    },
    accepts(token, req) {
      const [random = '', binding = ''] = token.split('.')
      const key = keys[findKey(keys, (key) => isSameText(token, sign(key, random, binding)))]
      if (!key) return false
      const present = bindingOf(key, session(req))
      return present === '' || isSameText(binding, present)
    },
  }
}

function sign(key: KeyObject, random: string, binding: string): string {
  const signed = `${random}.${binding}`
  return `${signed}.${createHmac('sha256', key).update(`token:${signed}`, 'utf8').digest('base64url')}`
}

/** Script can read the token, so it must not learn the session from it. */
function bindingOf(key: KeyObject, session: string | null | undefined): string {
  if (session === null || session === undefined || session === '') return ''
  // A promise would be one and the same text for everybody.
  if (typeof session !== 'string') throw new TypeError('The option session of csrfToken and csrfGuard must answer text, at once.')
  return createHmac('sha256', key).update(`session:${session}`, 'utf8').digest().subarray(0, 16).toString('base64url')
}

/**
 * Both cookies, since either may be what signs the request in. The access cookie is replaced every few minutes, so it stands for
 * its subject; whether it is genuine is for requireAuth to say. Two of one name are nobody's session: which one is read, chance
 * decides.
 */
function sessionOf(sessionCookieName: string, accessCookieName: string): SessionReader {
  return (req) => {
    const isAmbiguous = [sessionCookieName, accessCookieName].some((name) => countCookies(req, name) > 1)
    if (isAmbiguous) return `ambiguous:${randomBytes(32).toString('base64url')}`
    const [session, subject] = [readCookie(req, sessionCookieName), subjectOf(readCookie(req, accessCookieName))]
    return session === null && subject === null ? null : JSON.stringify([session, subject])
  }
}

function subjectOf(token: string | null): string | null {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const { sub } = Object(claims) as { sub?: unknown } // whatever was sent
    return typeof sub === 'string' && sub !== '' ? sub : null
  } catch {
    return null // no token of ours, so nobody's session
  }
}
