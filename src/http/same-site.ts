import type { Request, RequestHandler } from 'express'
import type { Settings } from '../config/settings'
import { CsrfValidationFailedError } from '../errors'
import { describeStep } from './description'
import { step } from './routes'

/**
 * For a request that could set or use our cookies: refused when the browser says that another site sent it. Clients that
 * send neither header (curl, native apps) pass: no browser attached a cookie to them against the owner's will.
 */
export function refuseCrossSite(settings: Settings, req: Request): void {
  if (!isTrusted(settings, req)) throw new CsrfValidationFailedError()
}

/** The same as a step before a line. */
export function sameSite(settings: Settings): RequestHandler {
  return refusingCrossSite((req) => refuseCrossSite(settings, req))
}

/** A step that says of itself what it refuses, whatever it looks at first. */
export function refusingCrossSite(check: (req: Request) => void): RequestHandler {
  return describeStep(step(check), { refuses: [CsrfValidationFailedError] })
}

/**
 * The same for a page of ours without script: under its no-referrer policy a browser says `Origin: null` even to our own
 * form, and so does a stranger's sandboxed frame. Which of them it is, Sec-Fetch-Site says.
 */
export function refuseForeignForm(settings: Settings, req: Request): void {
  const isOurs = req.headers.origin === 'null' && req.headers['sec-fetch-site'] === 'same-origin'
  if (!isOurs) refuseCrossSite(settings, req)
}

function isTrusted(settings: Settings, req: Request): boolean {
  const { origin } = req.headers
  if (origin !== undefined) return settings.trustedOrigins.includes(origin) || isOwn(settings, req, origin)
  const site = req.headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none'
}

/** Where the public origin was not said, what the browser believes it is talking to: no page can choose the Host header. */
function isOwn({ oauthRedirectBaseUrl }: Settings, { headers }: Request, origin: string): boolean {
  if (oauthRedirectBaseUrl !== '') return origin === oauthRedirectBaseUrl
  return URL.canParse(origin) && new URL(origin).host === headers.host
}
