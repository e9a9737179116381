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
 * Rejects a request that another site made a browser send, if it could set or use our cookies. A client that sends neither header passes
 * (curl, native apps), because no browser attached its cookies.
 */
export function refuseCrossSite({ settings, notices }: SiteContext, req: Request): void {
  if (isTrusted(settings, req)) return
  const { origin } = req.headers
  const notice = origin === undefined ? null : refusedOrigin(origin)
  if (notice) notices.tell(notice)
  throw new CsrfValidationFailedError({ details: { reason: origin === undefined ? 'site' : 'origin' } })
}

/** Makes a handler of `refuseCrossSite`, to put before a route. */
export function sameSite(ctx: SiteContext): RequestHandler {
  return refusingCrossSite((req) => refuseCrossSite(ctx, req))
}

/** Makes a handler with the description of its error, for any cross-site check. */
export function refusingCrossSite(check: (req: Request) => void): RequestHandler {
  return describeStep(step(check), { refuses: [CsrfValidationFailedError] })
}

/**
 * Rejects a foreign form, for our own pages without script. Their no-referrer policy makes browsers send `Origin: null` even with our own
 * form. Another site's sandboxed frame sends that too. `Sec-Fetch-Site` distinguishes them.
 */
export function refuseForeignForm(ctx: SiteContext, req: Request): void {
  const isOurs = req.headers.origin === 'null' && req.headers['sec-fetch-site'] === 'same-origin'
  if (!isOurs) refuseCrossSite(ctx, req)
}

/**
 * Rejects a GET from a frame or an image of another site, which could secretly use up the person's rate limit. With `cookieSamesite: 'none'`
 * it is allowed, because cookies are then meant for such frames.
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

/** Returns true if the origin is ours. Without a public origin the Host header decides, because no page can choose it. */
function isOwn({ publicUrl }: Pick<Settings, 'publicUrl'>, { headers }: Request, origin: string): boolean {
  if (publicUrl !== '') return origin === publicUrl
  return URL.canParse(origin) && new URL(origin).host === headers.host
}
