import { randomBytes } from 'node:crypto'
import type { Request, RequestHandler } from 'express'
import { ConfigurationError } from '../../errors'
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
  const signer = tokenSigner('csrfToken', { ...options, secure })

  return (req, res, next) => {
    const kept = reusable(signer, req)
    const token = kept ?? (signer ? signer.mint(req, res) : randomBytes(32).toString('base64url'))
    if (kept === null) {
      res.cookie(csrfCookieName, token, { path: '/', sameSite: 'lax', secure, httpOnly: false })
      // Without this header, a shared cache could give one person's token to another person.
      res.setHeader('Cache-Control', 'private, no-store')
    }
    res.vary('Cookie')
    res.locals['csrfToken'] = token
    next()
  }
}

/**
 * Returns the token of the cookie; null if the token must be replaced. The check is necessary, because the host's pages contain the token,
 * and an attacker can set a cookie with any text.
 */
function reusable(signer: TokenSigner | null, req: Request): string | null {
  const token = readCsrfCookie(anySite, req)
  if (token === null) return null
  const isGood = signer ? signer.isUpToDate(token, req) : /^[\w-]{43}$/.test(token)
  return isGood ? token : null
}
