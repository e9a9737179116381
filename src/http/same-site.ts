import type { Request, RequestHandler } from 'express'
import type { Settings } from '../config/every-setting'
import { CsrfValidationFailedError } from '../errors'
import { refusedOrigin } from '../setup-notices/login-notices'
import type { SetupNotices } from '../setup-notices/notices'
import { describeStep } from './description'
import { step } from './routes'

export interface SiteContext {
  readonly settings: Pick<Settings, 'publicUrl' | 'trustedOrigins'>
  readonly notices: SetupNotices
}

/**
 * Rejects a request that another site made a browser send. Routes that set or use our cookies need this check. A client that sends neither
 * `Origin` nor `Sec-Fetch-Site` passes, such as curl or a native app. This is safe, because such a client is not a browser that attaches
 * cookies by itself.
 */
export function refuseCrossSite({ settings, notices }: SiteContext, req: Request): void {
  if (isTrusted(settings, req)) return
  const { origin } = req.headers
  const notice = origin === undefined ? null : refusedOrigin(origin)
  if (notice) notices.tell(notice)
  throw new CsrfValidationFailedError({ details: { reason: origin === undefined ? 'site' : 'origin' } })
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
 * Rejects a form of another site, for our own pages without script. These pages have the policy `no-referrer`, so a browser sends `Origin:
 * null` even for our own form. A sandboxed frame of another site also sends `Origin: null`. `Sec-Fetch-Site` shows the difference.
 */
export function refuseForeignForm(ctx: SiteContext, req: Request): void {
  const isOurs = req.headers.origin === 'null' && req.headers['sec-fetch-site'] === 'same-origin'
  if (!isOurs) refuseCrossSite(ctx, req)
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
  if (origin !== undefined) return settings.trustedOrigins.includes(origin) || isOwn(settings, req, origin)
  const site = req.headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none'
}

/**
 * Returns true if the origin is ours. Without a public origin, the function compares the origin with the Host header, because no page can
 * choose that header.
 */
function isOwn({ publicUrl }: Pick<Settings, 'publicUrl'>, { headers }: Request, origin: string): boolean {
  if (publicUrl !== '') return origin === publicUrl
  return URL.canParse(origin) && new URL(origin).host === headers.host
}
