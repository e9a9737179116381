import type { RequestHandler } from 'express'
import { ConfigurationError, CsrfValidationFailedError } from '../../errors'
import { onlyValue } from '../../http/header-values'
import { isSafeMethod } from '../../http/safe-method'
import { isObject, refuseUnknownOptions } from '../../options'
import { refusing } from '../refusing'
import { isSameText } from '../shared-secret'
import { excludedPaths } from './excluded-paths'
import { isFromHere, originsOf } from './is-from-here'
import { readCsrfCookie } from './token-cookie'
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
 * Refuses requests that another site made a browser send (specification, Callers). Everything but GET, HEAD and OPTIONS needs
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
  refuseUnknownOptions('csrfGuard', options, ['exclude', 'secret', 'session', 'sessionCookieName', 'accessCookieName', 'trustedOrigins'])
  const isExcluded = excludedPaths(options.exclude)
  const trustedOrigins = originsOf(options.trustedOrigins)
  const signer = tokenSigner('csrfGuard', options)

  return refusing((req) => {
    if (isSafeMethod(req.method) || isExcluded(req)) return
    if (!isFromHere(req, trustedOrigins)) throw refusal('cross_site')
    const cookie = readCsrfCookie(req)
    const header = onlyValue(req, 'x-csrf-token')
    if (!cookie || !header) throw refusal('token_missing')
    if (!isSameText(cookie, header) || !(signer === null || signer.accepts(cookie, req))) throw refusal('token_mismatch')
  })
}

function refusal(reason: 'cross_site' | 'token_missing' | 'token_mismatch'): CsrfValidationFailedError {
  return new CsrfValidationFailedError({ details: { reason } })
}
