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
 * For a request that could set or use our cookies: refused when the browser says that another site sent it. Clients that
 * send neither header (curl, native apps) pass: no browser attached a cookie to them against the owner's will.
 */
export function refuseCrossSite({ settings, notices }: SiteContext, req: Request): void {
  if (isTrusted(settings, req)) return
  const { origin } = req.headers
  const notice = origin === undefined ? null : refusedOrigin(origin)
  if (notice) notices.tell(notice)
  throw new CsrfValidationFailedError({ details: { reason: origin === undefined ? 'site' : 'origin' } })
}

/** The same as a step before a line. */
export function sameSite(ctx: SiteContext): RequestHandler {
  return refusingCrossSite((req) => refuseCrossSite(ctx, req))
}

/** A step that says of itself what it refuses, whatever it looks at first. */
export function refusingCrossSite(check: (req: Request) => void): RequestHandler {
  return describeStep(step(check), { refuses: [CsrfValidationFailedError] })
}

/**
 * Does the same for a page of ours without script. Its no-referrer policy makes browsers send `Origin: null` even with our own form.
 * Another site's sandboxed frame sends that too. `Sec-Fetch-Site` distinguishes them.
 */
export function refuseForeignForm(ctx: SiteContext, req: Request): void {
  const isOurs = req.headers.origin === 'null' && req.headers['sec-fetch-site'] === 'same-origin'
  if (!isOurs) refuseCrossSite(ctx, req)
}

/**
 * For a GET that takes a person somewhere: refused in a frame or an image of another site, which could use up the person's rate limit
 * unseen. Where cookies are meant for other sites' frames (`cookieSamesite: 'none'`) such a frame is a person's own.
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

/** Where the public origin was not said, what the browser believes it is talking to: no page can choose the Host header. */
function isOwn({ publicUrl }: Pick<Settings, 'publicUrl'>, { headers }: Request, origin: string): boolean {
  if (publicUrl !== '') return origin === publicUrl
  return URL.canParse(origin) && new URL(origin).host === headers.host
}
