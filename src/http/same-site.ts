import type { Request } from 'express'
import type { Settings } from '../config/settings'
import { CsrfValidationFailedError } from '../errors'

/**
 * For a request that could set or use our cookies: refused when the browser says that another site sent it. Clients that
 * send neither header (curl, native apps) pass: no browser attached a cookie to them against the owner's will.
 */
export function refuseCrossSite(settings: Settings, req: Request): void {
  if (!isTrusted(settings, req)) throw new CsrfValidationFailedError()
}

function isTrusted(settings: Settings, req: Request): boolean {
  const { origin } = req.headers
  // An empty origin is nobody's, also where no public origin is configured.
  if (origin !== undefined) return origin !== '' && [settings.oauthRedirectBaseUrl, ...settings.trustedOrigins].includes(origin)
  const site = req.headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none'
}
