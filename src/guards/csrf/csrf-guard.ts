import type { Request, RequestHandler } from 'express'
import { ConfigurationError, CsrfValidationFailedError } from '../../errors'
import type { CookieSite } from '../../http/doubled-cookies'
import { onlyValue } from '../../http/header-values'
import { isSafeMethod } from '../../http/safe-method'
import { isObject, refuseUnknownOptions } from '../../options'
import { refusing } from '../refusing'
import { isSameText } from '../shared-secret'
import { excludedPaths } from './excluded-paths'
import { foreignBy, originsOf } from './foreign-by'
import { anySite, readCsrfCookie } from './token-cookie'
import { type SignerOptions, tokenSigner } from './token-signer'

export interface CsrfGuardOptions extends SignerOptions {
  /** Paths, from the app's root, that are not checked, and everything below them: `/webhooks` is not `/webhooks-admin`. */
  exclude?: readonly string[]
  /** That of csrfToken(): tokens it did not sign, or signed for somebody else's session, are refused. */
  secret?: string | readonly string[]
  /** Origins whose pages may call, beside the one the request's Host names. */
  trustedOrigins?: readonly string[]
}

/**
 * Refuses requests that another site made a browser send. Everything but GET, HEAD and OPTIONS needs
 * the cookie `csrf_token` and the header `X-CSRF-Token` with one value, and where the browser says which page is asking
 * (`Origin`, `Sec-Fetch-Site`) that has to be one of ours; else 403 CSRF_VALIDATION_FAILED. The method is the one Express will
 * route by: put it behind a middleware that overrides methods.
 * @throws ConfigurationError for an option that is not what it has to be
 */
export function csrfGuard(options: CsrfGuardOptions = {}): RequestHandler {
  if (!isObject(options))
    throw new ConfigurationError(
      'csrfGuard() takes an object: { exclude, secret, session, sessionCookieName, accessCookieName, trustedOrigins }.',
    )
  refuseUnknownOptions('csrfGuard', options, csrfOptionNames)
  return refusing(csrfCheck('csrfGuard', options))
}

export const csrfOptionNames = ['exclude', 'secret', 'session', 'sessionCookieName', 'accessCookieName', 'trustedOrigins'] as const

/** What `details.reason` of a refusal says. */
export type CsrfReason = 'origin' | 'site' | 'no_cookie' | 'no_token' | 'mismatch' | 'signature'

/** Returns the check itself, which throws a CsrfValidationFailedError. */
export function csrfCheck(
  where: string,
  options: CsrfGuardOptions,
  { tokenOf = headerToken, site = anySite }: { tokenOf?: (req: Request) => string | null; site?: CookieSite } = {},
): (req: Request) => void {
  const isExcluded = excludedPaths(options.exclude)
  const trustedOrigins = originsOf(options.trustedOrigins)
  const signer = tokenSigner(where, options)

  return (req) => {
    if (isSafeMethod(req.method) || isExcluded(req)) return
    const foreign = foreignBy(req, trustedOrigins)
    if (foreign) throw refusal(foreign)
    const cookie = readCsrfCookie(site, req)
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
