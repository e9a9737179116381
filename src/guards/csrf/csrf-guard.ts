import type { Request, RequestHandler } from 'express'
import { ConfigurationError, CsrfValidationFailedError } from '../../core/errors'
import { consoleLogger, safely } from '../../core/logger'
import { foreignRequest } from '../../core/setup-warnings/login-notices'
import { createSetupWarnings, type SetupWarnings } from '../../core/setup-warnings/notices'
import type { CookieSite } from '../../http/doubled-cookies'
import { onlyValue } from '../../http/header-values'
import { isSafeMethod } from '../../http/safe-method'
import { isObject, refuseUnknownOptions } from '../../options'
import { refusing } from '../refusing'
import { isSameText } from '../shared-secret'
import { excludedPaths } from './excluded-paths'
import { foreignBy, originsOf } from './foreign-by'
import { anySite, readCsrfCookie } from './token-cookie'
import { type SignerOptions, type SignerSite, tokenSigner } from './token-signer'

export interface CsrfGuardOptions extends SignerOptions {
  /**
   * Full paths (from the app's root) that the guard does not check. The guard also does not check any path below them. `/webhooks` does not
   * include `/webhooks-admin`.
   */
  exclude?: readonly string[]
  /** The secret of csrfToken(). The guard rejects a token with a wrong signature, and a token for another session. */
  secret?: string | readonly string[]
  /** Other origins with pages that may send requests. The origin in the request's Host header is always allowed. */
  trustedOrigins?: readonly string[]
}

/**
 * Rejects requests that another site made a browser send. Every method except GET, HEAD and OPTIONS needs the cookie `csrf_token`, and the
 * header `X-CSRF-Token` with the same value. If the browser sends the page's origin (`Origin`, `Sec-Fetch-Site`), the origin must be
 * allowed. Otherwise the guard sends 403 CSRF_VALIDATION_FAILED.
 *
 * If a middleware overrides methods, put the guard after that middleware. The guard checks the method that Express uses for its routes.
 * @throws ConfigurationError for a wrong option
 */
export function csrfGuard(options: CsrfGuardOptions = {}): RequestHandler {
  if (!isObject(options))
    throw new ConfigurationError(
      'csrfGuard() takes an object: { exclude, secret, session, sessionCookieName, accessCookieName, trustedOrigins }.',
    )
  refuseUnknownOptions('csrfGuard', options, csrfOptionNames)
  return refusing(csrfCheck('csrfGuard', options, { notices: createSetupWarnings(safely(consoleLogger)) }))
}

export const csrfOptionNames = ['exclude', 'secret', 'session', 'sessionCookieName', 'accessCookieName', 'trustedOrigins'] as const

/** The values of `details.reason`. */
export type CsrfReason = 'origin' | 'site' | 'no_cookie' | 'no_token' | 'mismatch' | 'signature'

/** Returns the check of `csrfGuard` as a plain function. The function throws a CsrfValidationFailedError, and logs where a foreign request came from. */
export function csrfCheck(
  where: string,
  options: CsrfGuardOptions,
  {
    notices,
    tokenOf = headerToken,
    site,
  }: { notices: SetupWarnings; tokenOf?: (req: Request) => string | null; site?: CookieSite & SignerSite },
): (req: Request) => void {
  const isExcluded = excludedPaths(options.exclude)
  const trustedOrigins = originsOf(options.trustedOrigins)
  const signer = tokenSigner(where, options, site)

  return (req) => {
    if (isSafeMethod(req.method) || isExcluded(req)) return
    const foreign = foreignBy(req, trustedOrigins)
    if (foreign) {
      const notice = foreignRequest(req)
      if (notice) notices.tell(notice)
      throw refusal(foreign)
    }
    const cookie = readCsrfCookie(site ?? anySite, req, signer)
    if (!cookie) throw refusal('no_cookie')
    const token = tokenOf(req)
    if (!token) throw refusal('no_token')
    if (!isSameText(cookie, token)) throw refusal('mismatch')
    if (signer && !signer.accepts(cookie, req)) throw refusal('signature')
  }
}

export function headerToken(req: Request): string | null {
  return onlyValue(req, 'x-csrf-token')
}

function refusal(reason: CsrfReason): CsrfValidationFailedError {
  return new CsrfValidationFailedError({ details: { reason } })
}
