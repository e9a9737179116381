import type { Request, RequestHandler } from 'express'
import { step } from '../../http/routes'
import { isObject, refuseUnknownOptions } from '../../options'
import { hasBearer } from '../../sessions/credentials'
import type { GuardContext } from '../guard-context'
import { logRefusal, refuse } from '../refusing'
import { type CsrfGuardOptions, csrfCheck, csrfOptionNames, headerToken } from './csrf-guard'
import type { TokenSource } from './csrf-token'
import { tokenSigner } from './token-signer'

/**
 * Makes the CSRF guard of a router. The guard knows the public origin, the trusted origins and the names of the cookies. The guard logs a
 * rejected origin. Without `secret`, the guard checks the tokens of `whoami` and `auth.csrfToken()`.
 *
 * A request with a Bearer header passes, because no browser adds that header by itself. The guard behind rejects a bad token.
 */
export function siteCsrf(ctx: GuardContext, options: CsrfGuardOptions): RequestHandler {
  const { settings, logger, notices } = ctx
  if (isObject(options)) refuseUnknownOptions('guards.csrf', options, csrfOptionNames)
  const { publicUrl, trustedOrigins, sessionCookieName, accessCookieName } = settings
  const known = [...(publicUrl === '' ? [] : [publicUrl]), ...trustedOrigins, ...(options.trustedOrigins ?? [])]
  const check = csrfCheck(
    'guards.csrf',
    { sessionCookieName, accessCookieName, ...options, trustedOrigins: known },
    { notices, tokenOf: sentToken, site: ctx },
  )
  return step(
    (req) => (hasBearer(req) ? undefined : check(req)),
    (error, req, res, next) => {
      logRefusal(logger, error)
      refuse(req, res, next, error, ctx)
    },
  )
}

/** Makes the tokens of a router, with the names and attributes of its cookies, under a key of `jwtSecret`. */
export function siteTokens(ctx: Pick<GuardContext, 'settings' | 'prefix' | 'keys' | 'now'>): TokenSource {
  const { sessionCookieName, accessCookieName, cookieSecure: secure, cookieSamesite: sameSite } = ctx.settings
  return { signer: tokenSigner('auth.csrfToken', { sessionCookieName, accessCookieName, secure }, ctx), secure, sameSite, site: ctx }
}

/**
 * Returns the token of the header. If there is no header, returns the token of the hidden form field. A page without script uses the field.
 */
function sentToken(req: Request): string | null {
  return headerToken(req) ?? formToken(req)
}

/** Reads the token only from a form, because a script that sends JSON can set the header. */
function formToken(req: Request): string | null {
  if (!/^(?:application\/x-www-form-urlencoded|multipart\/form-data)\b/i.test(req.headers['content-type'] ?? '')) return null
  const { _csrf: token } = Object(req.body) as { _csrf?: unknown } // a parser of the host can set any value
  return typeof token === 'string' ? token : null
}
