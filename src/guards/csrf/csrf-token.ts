import { randomBytes } from 'node:crypto'
import type { Request, RequestHandler, Response } from 'express'
import { ConfigurationError } from '../../core/errors'
import type { CookieScope } from '../../http/cookies'
import type { CookieSite } from '../../http/doubled-cookies'
import { isObject, refuseUnknownOptions } from '../../options'
import { anySite, csrfCookieName, readCsrfCookie } from './token-cookie'
import { type SignerOptions, type TokenSigner, tokenSigner } from './token-signer'

export interface CsrfTokenOptions extends SignerOptions {
  /**
   * At least 32 bytes. With a secret, which is recommended, the middleware signs the tokens and binds them to the session. To replace a
   * secret, pass a list.
   */
  secret?: string | readonly string[]
  /** Whether browsers send the cookie over https only. Default true. */
  secure?: boolean
}

/**
 * Sets the cookie `csrf_token`, which scripts may read (Path=/, SameSite=Lax). The middleware also sets `res.locals.csrfToken` to the same
 * value. Send the value back as `X-CSRF-Token`. The middleware keeps a valid cookie. After a login, the middleware replaces a signed
 * cookie.
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

/** Makes the tokens of a site, and sets the cookie. */
export interface TokenSource {
  readonly signer: TokenSigner | null
  readonly secure: boolean
  readonly sameSite: CookieScope['sameSite']
  readonly site: CookieSite
}

/** Makes the middleware of a source. */
export function givingToken(source: TokenSource): RequestHandler {
  return (req, res, next) => {
    const { token, isNew } = giveToken(source, req, res)
    // Without this header, a shared cache could give one person's token to another person.
    if (isNew) res.setHeader('Cache-Control', 'private, no-store')
    res.vary('Cookie')
    res.locals['csrfToken'] = token
    next()
  }
}

/** Returns the token of the request's browser. If its cookies are missing or out of date, sets them. */
export function giveToken(source: TokenSource, req: Request, res: Response): { token: string; isNew: boolean } {
  const { signer, secure, sameSite } = source
  const kept = reusable(source, req)
  if (kept !== null) return { token: kept, isNew: false }
  const token = signer ? signer.mint(req, res) : randomBytes(32).toString('base64url')
  res.cookie(csrfCookieName, token, { path: '/', sameSite, secure, httpOnly: false })
  return { token, isNew: true }
}

/**
 * Returns the token of the cookie; null if the token must be replaced. The check is necessary, because the host's pages contain the token,
 * and an attacker can set a cookie with any text.
 */
function reusable({ signer, site }: TokenSource, req: Request): string | null {
  const token = readCsrfCookie(site, req, signer)
  if (token === null) return null
  const isGood = signer ? signer.isUpToDate(token, req) : /^[\w-]{43}$/.test(token)
  return isGood ? token : null
}
