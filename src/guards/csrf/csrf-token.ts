import { createHmac, type KeyObject, randomBytes } from 'node:crypto'
import type { Request, RequestHandler, Response } from 'express'
import type { GuardSettings } from '../../core/config/guard-settings'
import { ConfigurationError } from '../../core/errors'
import { deriveKeyList, findKey, type Keys } from '../../core/keys'
import { type CookieScope, type CookieSite, cookieNames, readCookie } from '../../http/cookies'
import { isObject, refuseUnknownOptions } from '../../options'
import { csrfBinding, csrfBindingNames } from '../../sessions/csrf-binding'
import { findSessionName } from '../../sessions/current-auth'
import { checkSecrets, isSameText } from '../internal-token'

export interface CsrfTokenOptions extends SignerOptions {
  /** At least 32 bytes. With a secret, which is recommended, tokens are signed and bound to the session. To replace one, pass a list. */
  secret?: string | readonly string[]
  /** Whether browsers send the cookie over https only. Default true. */
  secure?: boolean
}

/**
 * Sets the cookie `csrf_token`, which scripts may read (Path=/, SameSite=Lax), and `res.locals.csrfToken` to the same value. Send the value
 * back as `X-CSRF-Token`. A valid cookie stays. After a login, a signed cookie is replaced.
 * @throws ConfigurationError for a wrong option
 */
export function csrfToken(options: CsrfTokenOptions = {}): RequestHandler {
  if (!isObject(options))
    throw new ConfigurationError('csrfToken() takes an object: { secret, secure, session, sessionCookieName, accessCookieName }.')
  refuseUnknownOptions('csrfToken', options, ['secret', 'secure', 'session', 'sessionCookieName', 'accessCookieName'])
  const { secure = true } = options
  if (typeof secure !== 'boolean') throw new ConfigurationError('csrfToken: secure must be true or false.')
  return givingToken({ signer: tokenSigner('csrfToken', { ...options, secure }), secure, sameSite: 'lax', site: anySite })
}

export interface TokenSource {
  readonly signer: TokenSigner | null
  readonly secure: boolean
  readonly sameSite: CookieScope['sameSite']
  readonly site: CookieSite
}

export function givingToken(source: TokenSource): RequestHandler {
  return (req, res, next) => {
    const { token, isNew } = giveToken(source, req, res)
    // Without this header, a shared cache could give one person's token to another.
    if (isNew) res.setHeader('Cache-Control', 'private, no-store')
    res.vary('Cookie')
    res.locals['csrfToken'] = token
    next()
  }
}

/** Sets missing or outdated cookies. */
export function giveToken(source: TokenSource, req: Request, res: Response): { token: string; isNew: boolean } {
  const { signer, secure, sameSite } = source
  const kept = reusable(source, req)
  if (kept !== null) return { token: kept, isNew: false }
  const token = signer ? signer.mint(req, res) : randomBytes(32).toString('base64url')
  res.cookie(csrfCookieName, token, { path: '/', sameSite, secure, httpOnly: false })
  return { token, isNew: true }
}

/** Null if the token must be replaced: the host's pages contain it, and an attacker can set a cookie with any text. */
function reusable({ signer, site }: TokenSource, req: Request): string | null {
  const token = readCsrfCookie(site, req, signer)
  if (token === null) return null
  const isGood = signer ? signer.isUpToDate(token, req) : /^[\w-]{43}$/.test(token)
  return isGood ? token : null
}

const csrfCookieName = 'csrf_token'

/** For middleware without a router. */
export const anySite: CookieSite = { settings: {} }

/** Of two cookies, the one that is good for this request counts: a sibling may have planted the other. */
export function readCsrfCookie(site: CookieSite, req: Request, signer: TokenSigner | null): string | null {
  const isOwnCookie = (_name: string, value: string) => signer?.accepts(value, req) ?? false
  return readCookie({ ...site, isOwnCookie }, req, csrfCookieName)
}

/** Returns the name of a request's session; null or undefined if the request has no session. */
export type SessionReader = (req: Request) => string | null | undefined

export interface SignerOptions {
  /** At least 32 bytes. In a list, the first secret signs, and all secrets verify. */
  secret?: string | readonly string[]
  /** Returns the name of the session. Default: the session that a guard of the library found. */
  session?: SessionReader
  /** The same name as in the router's settings. Default `auth_session`. A request with this cookie has a session. */
  sessionCookieName?: string
  /** The same name as in the router's settings. Default `access_token`. A request with this cookie has a session. */
  accessCookieName?: string
}

/** The router, or the guards of `createGuards()`. Without `secret`, their own keys sign the tokens. */
export interface SignerSite {
  readonly settings: Pick<GuardSettings, 'cookieSamesite'>
  /** Null: the guards do not know `jwtSecret`. */
  readonly keys: Pick<Keys, 'csrf' | 'csrf-binding'> | null
  readonly now: () => Date
}

interface TokenSigner {
  /** Sets the cookie that identifies the browser, if it has none. */
  mint(req: Request, res: Response): string
  /** The signature is valid for the session of the request, or for this browser. */
  accepts(token: string, req: Request): boolean
  /** If the request has a session, the token must be bound to a session. */
  isUpToDate(token: string, req: Request): boolean
}

/**
 * Signed double submit (OWASP, Cross-Site Request Forgery Prevention): `random.session.browser.mac`. Bound to the session that an earlier
 * guard found, and to a random value in a separate cookie. So a token that an attacker's subdomain sets as a cookie is rejected: it is for
 * another session and another browser. If the token and the request both have a session, these must be equal. Otherwise the browser must be
 * the same, because the guard that finds the session can run later. Without a session or a cookie that stands for one, an attacker gains
 * nothing. Any valid signature then passes, so that an expired session gets 401 and not 403.
 * @returns null without `secret` and without a site: then tokens have no signature
 */
export function tokenSigner(where: string, options: SignerOptions & { secure?: boolean }, site?: SignerSite): TokenSigner | null {
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
  if (secret === undefined && options.session)
    throw new ConfigurationError(`${where}: session binds signed tokens to a session, so pass \`secret\` too.`)
  if (secret === undefined && !site) return null
  const own = secret === undefined ? site : undefined
  const { csrf: keys, 'csrf-binding': browserKeys } = own ? ownKeys(where, own) : keysOf(checkSecrets(`${where}: secret`, secret))
  const browser = csrfBinding(browserKeys, secure, { sameSite: own?.settings.cookieSamesite, now: own?.now })

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
    isUpToDate: (token, req) =>
      accepts(token, req) &&
      (token.split('.')[1] !== '' || !session(req)) &&
      // A check before the guards knows no session, so there the token has to be of this browser.
      (!own || read(token, req)?.isOfBrowser === true),
  }
}

type SignerKeys = NonNullable<SignerSite['keys']>

function keysOf(secrets: readonly string[]): SignerKeys {
  return { csrf: deriveKeyList(secrets, 'csrf'), 'csrf-binding': deriveKeyList(secrets, 'csrf-binding') }
}

function ownKeys(where: string, { keys }: SignerSite): SignerKeys {
  if (keys) return keys
  throw new ConfigurationError(
    `${where}: pass \`secret\`, the secret of your csrfToken(). These guards have no jwtSecret, so they cannot check the tokens of the router.`,
  )
}

function sign(key: KeyObject, random: string, ofSession: string, ofBrowser: string): string {
  const signed = `${random}.${ofSession}.${ofBrowser}`
  return `${signed}.${createHmac('sha256', key).update(`token:${signed}`, 'utf8').digest('base64url')}`
}

/** An HMAC, because scripts can read the token and must not learn the session. */
function bindingOf(key: KeyObject, kind: 'session' | 'browser', to: string | null | undefined): string {
  if (to === null || to === undefined || to === '') return ''
  // As text, a promise would be the same for every person.
  if (typeof to !== 'string') throw new TypeError('The option session of csrfToken and csrfGuard must return text, and no promise.')
  return createHmac('sha256', key).update(`${kind}:${to}`, 'utf8').digest().subarray(0, 16).toString('base64url')
}
