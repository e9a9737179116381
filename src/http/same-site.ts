import type { Request, RequestHandler } from 'express'
import type { Settings } from '../core/config/every-setting'
import { CsrfValidationFailedError } from '../core/errors'
import { foreignRequest, type SetupWarnings } from '../core/setup-warnings'
import { describeStep } from './description'
import { step } from './routes'

export interface SiteContext {
  readonly settings: Pick<Settings, 'publicUrl' | 'trustedOrigins'>
  readonly notices: SetupWarnings
}

/**
 * Routes that set or use our cookies need this check. A client with neither `Origin` nor `Sec-Fetch-Site` passes, such as curl or a native
 * app. This is safe, because it is not a browser that attaches cookies by itself.
 */
export function refuseCrossSite(ctx: SiteContext, req: Request): void {
  if (!isOwnRequest(ctx, req))
    throw new CsrfValidationFailedError({ details: { reason: req.headers.origin === undefined ? 'site' : 'origin' } })
}

/** Logs the origin of another site once. */
export function isOwnRequest({ settings, notices }: SiteContext, req: Request): boolean {
  if (isTrusted(settings, req)) return true
  const notice = foreignRequest(req)
  if (notice) notices.tell(notice)
  return false
}

export function sameSite(ctx: SiteContext): RequestHandler {
  return refusingCrossSite((req) => refuseCrossSite(ctx, req))
}

export function refusingCrossSite(check: (req: Request) => void): RequestHandler {
  return describeStep(step(check), { refuses: [CsrfValidationFailedError] })
}

/** With the policy `no-referrer` (helmet), a browser sends `Origin: null`. A sandboxed frame cannot set this `Sec-Fetch-Site`. */
export function isOwnPageWithoutOrigin({ headers }: Pick<Request, 'headers'>): boolean {
  return headers.origin === 'null' && headers['sec-fetch-site'] === 'same-origin'
}

/** Such a GET could secretly count against the person's limit. `cookieSamesite: 'none'` wants cookies in other sites' frames. */
export function refuseEmbedding({ cookieSamesite }: Pick<Settings, 'cookieSamesite'>, { headers }: Request): void {
  const isEmbedded = (headers['sec-fetch-dest'] ?? 'document') !== 'document' && headers['sec-fetch-site'] === 'cross-site'
  if (isEmbedded && cookieSamesite !== 'none') throw new CsrfValidationFailedError({ details: { reason: 'site' } })
}

function isTrusted(settings: SiteContext['settings'], req: Request): boolean {
  const { origin } = req.headers
  if (isOwnPageWithoutOrigin(req)) return true
  if (origin !== undefined) return settings.trustedOrigins.includes(origin) || isOwn(settings, req, origin)
  return isOfThisSite(req)
}

/** Or the browser says nothing. */
function isOfThisSite({ headers }: Pick<Request, 'headers'>): boolean {
  const site = headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none'
}

/**
 * Without a public origin, the Host header counts, because no page can choose it. It has no scheme, so the browser must not call the sender
 * another site: a page of http could be forged.
 */
function isOwn({ publicUrl }: Pick<Settings, 'publicUrl'>, req: Request, origin: string): boolean {
  if (publicUrl !== '') return origin === publicUrl
  const host = URL.canParse(origin) ? new URL(origin).host : ''
  return host !== '' && host === req.headers.host && isOfThisSite(req) // `file://` has no host
}

/** RFC 9110 section 9.2.1. */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}
