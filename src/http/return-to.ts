import type { Request } from 'express'
import type { Settings } from '../core/config/every-setting'
import { ValidationError } from '../core/errors'
import { withParameter } from './send'

/** The settings that determine the allowed targets. */
type ReturnToSettings = Pick<Settings, 'publicUrl' | 'trustedOrigins' | 'tokenDelivery'>

/** The maximum length of a `return_to`, in characters. */
export const longestReturnTo = 1024

/**
 * Returns the `return_to` of a request, unchanged. Returns null if the request has no `return_to`. The value must be a path of this site,
 * or an absolute URL with an allowed origin. Allowed are the public origin and the trusted origins. With `tokenDelivery: 'bearer'`, no
 * value is allowed, because a redirect would lose the tokens.
 * @param values every value of the parameter
 * @throws ValidationError for any other value, and for two values
 * @see RFC 9700 section 4.11, open redirectors
 */
export function readReturnTo(settings: ReturnToSettings, values: readonly string[]): string | null {
  const [value, ...others] = values
  if (value === undefined) return null
  if (settings.tokenDelivery === 'bearer') throw refusal('any.unknown')
  if (others.length > 0 || !isReturnTo(settings, value)) throw refusal('string.uri')
  return value
}

/** Returns the `Location` of a validated `return_to`. A path stays unchanged. A URL gets the form that browsers use. */
export function locationOf(returnTo: string): string {
  return returnTo.startsWith('/') ? returnTo : new URL(returnTo).href
}

/** Returns true if the text is an allowed `return_to`. */
export function isReturnTo(settings: ReturnToSettings, value: string): boolean {
  if (value.length > longestReturnTo || !/^[\x21-\x7e]+$/.test(value)) return false
  // Rejects a backslash before the query, because software disagrees about the host of such a URL. Browsers read a backslash as a slash.
  // Other software reads the text before the backslash as a part of the host.
  if (/^[^?#]*\\/.test(value)) return false
  return value.startsWith('/') ? isPath(value) : isKnownUrl(settings, value)
}

/**
 * Returns true for a path with one leading slash, because '//host' is another site. The function also rejects a percent-encoded slash,
 * backslash or control character after that slash, because a proxy can decode the character.
 */
function isPath(value: string): boolean {
  if (/^\/(?:\/|%(?:[01][\da-f]|20|2f|5c|7f))/i.test(value)) return false
  const anywhere = 'https://site.invalid'
  if (!URL.canParse(value, anywhere)) return false
  const url = new URL(value, anywhere)
  // '/.//host' is a path of this site, but its `pathname` is '//host', which is another site.
  return url.origin === anywhere && !url.pathname.startsWith('//')
}

/**
 * Returns true for a URL of an allowed origin. The URL parser corrects 'https:host' and removes an empty user name. So the function rejects
 * both forms before it parses the URL.
 */
function isKnownUrl({ publicUrl, trustedOrigins }: ReturnToSettings, value: string): boolean {
  const [authority] = /^https?:\/\/[^/?#]+/i.exec(value) ?? []
  if (authority === undefined || authority.includes('@') || !URL.canParse(value)) return false
  const { origin } = new URL(value)
  return origin === publicUrl || trustedOrigins.includes(origin)
}

function refusal(rule: string): ValidationError {
  return new ValidationError({ details: { errors: [{ path: 'return_to', rule }] } })
}

/**
 * Returns the `Location` of the sign-in page, with `returnTo` as a parameter. If the sign-in page is on the public origin, the parameter is
 * a path. Otherwise the parameter is an absolute URL. If `returnTo` is not a valid `return_to`, the `Location` does not contain it.
 */
export function signInLocation(settings: ReturnToSettings, page: string, returnTo: string | null): string {
  const back = returnTo === null ? null : seenFrom(settings, page, returnTo)
  return back !== null && isReturnTo(settings, back) ? withParameter(page, 'return_to', encodeURIComponent(back)) : page
}

function seenFrom({ publicUrl }: ReturnToSettings, page: string, returnTo: string): string | null {
  const isOnOurOrigin = page.startsWith('/') || new URL(page).origin === publicUrl
  if (isOnOurOrigin || !returnTo.startsWith('/')) return returnTo
  return publicUrl === '' ? null : `${publicUrl}${returnTo}`
}

/** Returns true if a request is for the sign-in page itself. Without a public origin, the Host header determines our origin. */
export function isSignInPage({ publicUrl }: Pick<Settings, 'publicUrl'>, page: string, req: Request): boolean {
  const asked = req.originalUrl.split('?', 1)[0]
  if (page.startsWith('/')) return asked === page.split(/[?#]/, 1)[0]
  const { origin, host, pathname } = new URL(page)
  return asked === pathname && (publicUrl === '' ? host === req.headers.host : origin === publicUrl)
}

/**
 * Returns the path of the route that renews the access cookie and then redirects back to a page. The path is relative to the prefix.
 * Returns null if `tokenDelivery` has no access cookie.
 */
export function continuePath({
  tokenDelivery,
  pagesEnabled = false,
}: Pick<Settings, 'tokenDelivery'> & Partial<Pick<Settings, 'pagesEnabled'>>): string | null {
  if (tokenDelivery === 'cookie' || (tokenDelivery === 'both' && pagesEnabled)) return '/continue'
  // Browsers send the refresh cookie only below `/cookie`.
  return tokenDelivery === 'both' ? '/cookie/continue' : null
}

/** Returns true if a browser shows the response to a person. Otherwise a script reads JSON. */
export function wantsPage(req: Request): boolean {
  return /\btext\/html\b/i.test(req.headers.accept ?? '')
}
