import type { Request } from 'express'
import type { Settings } from '../core/config/every-setting'
import { ValidationError } from '../core/errors'
import { withParameter } from './send'

type ReturnToSettings = Pick<Settings, 'publicUrl' | 'trustedOrigins' | 'tokenDelivery'>

/** In characters of its JSON, which cookies and tokens contain. */
export const longestReturnTo = 1024

/**
 * Unchanged. Null: the request has none. Must be a path of this site, or an absolute URL of the public origin or a trusted origin. With
 * `tokenDelivery: 'bearer'`, no value is allowed, because a redirect would lose the tokens.
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

/** For a validated `return_to`. A URL gets the form that browsers use. */
export function locationOf(returnTo: string): string {
  return returnTo.startsWith('/') ? returnTo : new URL(returnTo).href
}

export function isReturnTo(settings: ReturnToSettings, value: string): boolean {
  if (JSON.stringify(value).length - 2 > longestReturnTo || !/^[\x21-\x7e]+$/.test(value)) return false
  // Browsers read a backslash before the query as a slash. Other software reads the text before it as a part of the host.
  if (/^[^?#]*\\/.test(value)) return false
  return value.startsWith('/') ? isPath(value) : isKnownUrl(settings, value)
}

/** '//host' is another site. A proxy can decode a percent-encoded slash, backslash or control character after the first slash. */
function isPath(value: string): boolean {
  if (/^\/(?:\/|%(?:[01][\da-f]|20|2f|5c|7f))/i.test(value)) return false
  const anywhere = 'https://site.invalid'
  if (!URL.canParse(value, anywhere)) return false
  const url = new URL(value, anywhere)
  // '/.//host' is a path of this site, but its `pathname` is '//host', which is another site.
  return url.origin === anywhere && !url.pathname.startsWith('//')
}

/** The URL parser corrects 'https:host' and removes an empty user name, so both are rejected before. */
function isKnownUrl({ publicUrl, trustedOrigins }: ReturnToSettings, value: string): boolean {
  const [authority] = /^https?:\/\/[^/?#]+/i.exec(value) ?? []
  if (authority === undefined || authority.includes('@') || !URL.canParse(value)) return false
  const { origin } = new URL(value)
  return origin === publicUrl || trustedOrigins.includes(origin)
}

function refusal(rule: string): ValidationError {
  return new ValidationError({ details: { errors: [{ path: 'return_to', rule }] } })
}

/** `returnTo` becomes a path if the page is on the public origin, or else an absolute URL. An invalid `returnTo` is left out. */
export function signInLocation(settings: ReturnToSettings, page: string, returnTo: string | null): string {
  const back = returnTo === null ? null : seenFrom(settings, page, returnTo)
  return back !== null && isReturnTo(settings, back) ? withParameter(page, 'return_to', encodeURIComponent(back)) : page
}

function seenFrom({ publicUrl }: ReturnToSettings, page: string, returnTo: string): string | null {
  const isOnOurOrigin = page.startsWith('/') || new URL(page).origin === publicUrl
  if (isOnOurOrigin || !returnTo.startsWith('/')) return returnTo
  return publicUrl === '' ? null : `${publicUrl}${returnTo}`
}

/** Without a public origin, the Host header determines our origin. */
export function isSignInPage({ publicUrl }: Pick<Settings, 'publicUrl'>, page: string, req: Request): boolean {
  const asked = req.originalUrl.split('?', 1)[0]
  if (page.startsWith('/')) return asked === page.split(/[?#]/, 1)[0]
  const { origin, host, pathname } = new URL(page)
  return asked === pathname && (publicUrl === '' ? host === req.headers.host : origin === publicUrl)
}

/** Renews the access cookie, then redirects back. Relative to the prefix. Null: `tokenDelivery` has no access cookie. */
export function continuePath({
  tokenDelivery,
  pagesEnabled = false,
}: Pick<Settings, 'tokenDelivery'> & Partial<Pick<Settings, 'pagesEnabled'>>): string | null {
  if (tokenDelivery === 'cookie' || (tokenDelivery === 'both' && pagesEnabled)) return '/continue'
  // Browsers send the refresh cookie only below `/cookie`.
  return tokenDelivery === 'both' ? '/cookie/continue' : null
}

/** Otherwise a script reads JSON. */
export function wantsPage(req: Request): boolean {
  return /\btext\/html\b/i.test(req.headers.accept ?? '')
}
