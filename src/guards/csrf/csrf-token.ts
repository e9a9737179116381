import { randomBytes } from 'node:crypto'
import type { Request, RequestHandler } from 'express'
import { ConfigurationError } from '../../errors'
import { isObject, refuseUnknownOptions } from '../../options'
import { anySite, csrfCookieName, readCsrfCookie } from './token-cookie'
import { type SignerOptions, type TokenSigner, tokenSigner } from './token-signer'

export interface CsrfTokenOptions extends SignerOptions {
  /** At least 32 bytes. With it tokens are signed and bound to the session, which is recommended. Pass a list to replace a secret. */
  secret?: string | readonly string[]
  /** Sends the cookie over https only. Default true. */
  secure?: boolean
}

/**
 * Sets the cookie `csrf_token`, which scripts may read (Path=/, SameSite=Lax), and puts its value into `res.locals.csrfToken`. Send it back
 * as `X-CSRF-Token`. A valid cookie is kept; after a login a signed one is replaced.
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
      res.setHeader('Cache-Control', 'private, no-store') // a shared cache would give one person's token to another
    }
    res.vary('Cookie')
    res.locals['csrfToken'] = token
    next()
  }
}

/** Returns the cookie's token if it looks like ours. Any other text would end up in the host's pages. */
function reusable(signer: TokenSigner | null, req: Request): string | null {
  const token = readCsrfCookie(anySite, req)
  if (token === null) return null
  const isGood = signer ? signer.isUpToDate(token, req) : /^[\w-]{43}$/.test(token)
  return isGood ? token : null
}
