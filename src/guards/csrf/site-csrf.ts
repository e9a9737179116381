import type { Request, RequestHandler } from 'express'
import { CsrfValidationFailedError } from '../../errors'
import { step } from '../../http/routes'
import { isObject, refuseUnknownOptions } from '../../options'
import { refusedOrigin } from '../../setup-notices/login-notices'
import type { GuardContext } from '../guards'
import { logRefusal, refuse } from '../refusing'
import { type CsrfGuardOptions, csrfCheck, csrfOptionNames, headerToken } from './csrf-guard'

/**
 * Makes the CSRF guard of a router. The guard knows the public origin, the trusted origins and the names of the cookies. The guard logs a
 * rejected origin.
 */
export function siteCsrf(ctx: GuardContext, options: CsrfGuardOptions): RequestHandler {
  const { settings, logger, notices } = ctx
  if (isObject(options)) refuseUnknownOptions('guards.csrf', options, csrfOptionNames)
  const { publicUrl, trustedOrigins, sessionCookieName, accessCookieName } = settings
  const known = [...(publicUrl === '' ? [] : [publicUrl]), ...trustedOrigins, ...(options.trustedOrigins ?? [])]
  const check = csrfCheck(
    'guards.csrf',
    { sessionCookieName, accessCookieName, ...options, trustedOrigins: known },
    { tokenOf: sentToken, site: ctx },
  )
  return step(check, (error, req, res, next) => {
    const { origin } = req.headers
    const isForeign = error instanceof CsrfValidationFailedError && error.details['reason'] === 'origin'
    const notice = isForeign && origin !== undefined ? refusedOrigin(origin) : null
    if (notice) notices.tell(notice)
    logRefusal(logger, error)
    refuse(req, res, next, error, ctx)
  })
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
