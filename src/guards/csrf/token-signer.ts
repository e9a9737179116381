import { createHmac, type KeyObject, randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import { ConfigurationError } from '../../errors'
import { cookieNames } from '../../http/cookies'
import { deriveKeyList, findKey } from '../../keys'
import { csrfBinding, csrfBindingNames } from '../../session/csrf-binding'
import { findSessionName } from '../current-auth'
import { checkSecrets, isSameText } from '../shared-secret'

/** Names the session of a request; null or undefined: there is none. */
export type SessionReader = (req: Request) => string | null | undefined

export interface SignerOptions {
  /** At least 32 bytes. A list while one is being replaced: the first signs, all verify. */
  secret?: string | readonly string[]
  /** In place of the session that a guard of ours found. */
  session?: SessionReader
  /** As in the router's settings; default `auth_session`. A request with a cookie of that name shows a session. */
  sessionCookieName?: string
  /** As in the router's settings; default `access_token`. A request with a cookie of that name shows a session. */
  accessCookieName?: string
}

export interface TokenSigner {
  /** Sets the cookie that names the browser, where there is none. */
  mint(req: Request, res: Response): string
  /** Signed by us, for no other session than the request's, or for this browser. */
  accepts(token: string, req: Request): boolean
  /** Accepted, and bound to the session where there is one: such a token needs no replacement. */
  isUpToDate(token: string, req: Request): boolean
}

/**
 * The signed double submit (OWASP, Cross-Site Request Forgery Prevention): `random.session.browser.mac`. A token is bound to the session
 * that a guard found before, and to a random value in a cookie of its own. An attacker's subdomain can plant a token of its own;
 * that token belongs to another session, and to another browser. The session decides where both the token and the request
 * have one; otherwise the browser does, because a guard may run after this check. A request with no session and no such cookie has nothing to
 * ride on, so any token of ours does: a session that ran out ends in 401, not in 403.
 */
export function tokenSigner(where: string, options: SignerOptions & { secure?: boolean }): TokenSigner | null {
  const {
    secret,
    session = findSessionName,
    secure = true,
    sessionCookieName = 'auth_session',
    accessCookieName = 'access_token',
  } = options
  if (![sessionCookieName, accessCookieName].every((name) => typeof name === 'string' && name !== ''))
    throw new ConfigurationError(`${where}: sessionCookieName and accessCookieName must be the names of cookies, as the router has them.`)
  if (typeof session !== 'function') throw new ConfigurationError(`${where}: session must be a function of a request that returns text.`)
  if (secret === undefined) {
    if (options.session) throw new ConfigurationError(`${where}: session is what signed tokens are bound to; pass \`secret\` too.`)
    return null
  }
  const secrets = checkSecrets(`${where}: secret`, secret)
  const keys = deriveKeyList(secrets, 'csrf')
  const browser = csrfBinding(deriveKeyList(secrets, 'csrf-binding'), secure)

  const known: readonly string[] = [...(options.session ? [] : [sessionCookieName, accessCookieName]), ...csrfBindingNames]
  const isBare = (req: Request) => !cookieNames(req).some((name) => known.includes(name))

  function read(token: string, req: Request): { ofSession: string; present: string; isOfBrowser: boolean } | null {
    const [random = '', ofSession = '', ofBrowser = ''] = token.split('.')
    const key = keys[findKey(keys, (key) => isSameText(token, sign(key, random, ofSession, ofBrowser)))]
    if (!key) return null
    const isOfBrowser = browser.read(req).some((text) => isSameText(ofBrowser, bindingOf(key, 'browser', text)))
    return { ofSession, present: bindingOf(key, 'session', session(req)), isOfBrowser }
  }

  const accepts: TokenSigner['accepts'] = (token, req) => {
    const found = read(token, req)
    if (!found) return false
    const { ofSession, present, isOfBrowser } = found
    if (ofSession !== '' && present !== '') return isSameText(ofSession, present)
    return isOfBrowser || (present === '' && isBare(req))
  }

  return {
    mint(req, res) {
      const random = randomBytes(32).toString('base64url')
      const [ofSession, ofBrowser] = [bindingOf(keys[0], 'session', session(req)), bindingOf(keys[0], 'browser', browser.ensure(req, res))]
      return sign(keys[0], random, ofSession, ofBrowser)
    },
    accepts,
    isUpToDate: (token, req) => accepts(token, req) && (token.split('.')[1] !== '' || !session(req)),
  }
}

function sign(key: KeyObject, random: string, ofSession: string, ofBrowser: string): string {
  const signed = `${random}.${ofSession}.${ofBrowser}`
  return `${signed}.${createHmac('sha256', key).update(`token:${signed}`, 'utf8').digest('base64url')}`
}

/** Script can read the token, so it must not learn the session from it. */
function bindingOf(key: KeyObject, kind: 'session' | 'browser', to: string | null | undefined): string {
  if (to === null || to === undefined || to === '') return ''
  // A promise would be one and the same text for everybody.
  if (typeof to !== 'string') throw new TypeError('The option session of csrfToken and csrfGuard must answer text, at once.')
  return createHmac('sha256', key).update(`${kind}:${to}`, 'utf8').digest().subarray(0, 16).toString('base64url')
}
