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
 * Rejects a request that another site made a browser send. Routes that set or use our cookies need this check. A client that sends neither
 * `Origin` nor `Sec-Fetch-Site` passes, such as curl or a native app. This is safe, because such a client is not a browser that attaches
 * cookies by itself.
 */
export function refuseCrossSite(ctx: SiteContext, req: Request): void {
  if (!isOwnRequest(ctx, req))
    throw new CsrfValidationFailedError({ details: { reason: req.headers.origin === undefined ? 'site' : 'origin' } })
}

/** Returns the result of the check of `refuseCrossSite`. For a request that another site made a browser send, logs its origin once. */
export function isOwnRequest({ settings, notices }: SiteContext, req: Request): boolean {
  if (isTrusted(settings, req)) return true
  const notice = foreignRequest(req)
  if (notice) notices.tell(notice)
  return false
}

/** Makes a handler from `refuseCrossSite`, for use before a route. */
export function sameSite(ctx: SiteContext): RequestHandler {
  return refusingCrossSite((req) => refuseCrossSite(ctx, req))
}

/** Makes a handler from any cross-site check. The handler has the description of its error. */
export function refusingCrossSite(check: (req: Request) => void): RequestHandler {
  return describeStep(step(check), { refuses: [CsrfValidationFailedError] })
}

/**
 * Returns true for a request of a page of this origin with the policy `no-referrer`, the default of helmet. A browser then sends `Origin:
 * null`. A sandboxed frame of another site sends `Origin: null` too, but not this `Sec-Fetch-Site`, which no page can set.
 */
export function isOwnPageWithoutOrigin({ headers }: Pick<Request, 'headers'>): boolean {
  return headers.origin === 'null' && headers['sec-fetch-site'] === 'same-origin'
}

/**
 * Rejects a GET from a frame or an image of another site. Such requests could secretly count against the person's rate limit. With
 * `cookieSamesite: 'none'`, the function allows the GET, because the host wants cookies in frames of other sites.
 */
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

/** Returns true if the browser names no other origin as the sender, or says nothing. */
function isOfThisSite({ headers }: Pick<Request, 'headers'>): boolean {
  const site = headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none'
}

/**
 * Returns true if the origin is ours. Without a public origin, the function compares the origin with the Host header, because no page can
 * choose that header. The Host header has no scheme, so the browser must not call the sender another site: a page of http could be forged.
 */
function isOwn({ publicUrl }: Pick<Settings, 'publicUrl'>, req: Request, origin: string): boolean {
  if (publicUrl !== '') return origin === publicUrl
  return URL.canParse(origin) && new URL(origin).host === req.headers.host && isOfThisSite(req)
}

/** Returns true for a method that changes nothing (RFC 9110 section 9.2.1). */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}
