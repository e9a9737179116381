import type { Settings } from '../config/every-setting'
import { ValidationError } from '../errors'

/** What decides where a browser may be sent back to. */
export type ReturnToSettings = Pick<Settings, 'publicUrl' | 'trustedOrigins' | 'tokenDelivery'>

/** The most characters of a `return_to`. */
export const longestReturnTo = 1024

/**
 * Returns the one `return_to` of a request, as it came; null where the request has none. It is a path of this site, or an absolute URL of
 * the public origin or of a trusted one. Delivery `bearer` takes none, because a redirect would lose the tokens.
 * @param values every value the request gives for it
 * @throws ValidationError for any other value, and for two of them
 * @see RFC 9700 section 4.11, open redirectors
 */
export function readReturnTo(settings: ReturnToSettings, values: readonly string[]): string | null {
  const [value, ...others] = values
  if (value === undefined) return null
  if (settings.tokenDelivery === 'bearer') throw refusal('any.unknown')
  if (others.length > 0 || !isReturnTo(settings, value)) throw refusal('string.uri')
  return value
}

/** Returns the `Location` of a `return_to` that was checked: a path as it came, a URL as browsers write it. */
export function locationOf(returnTo: string): string {
  return returnTo.startsWith('/') ? returnTo : new URL(returnTo).href
}

/** Whether a text is a `return_to` that we follow. */
export function isReturnTo(settings: ReturnToSettings, value: string): boolean {
  if (value.length > longestReturnTo || !/^[\x21-\x7e]+$/.test(value)) return false
  // Browsers read a backslash before the query as a slash; other software reads what stands before it as the host.
  if (/^[^?#]*\\/.test(value)) return false
  return value.startsWith('/') ? isPath(value) : isKnownUrl(settings, value)
}

/**
 * One leading slash, because '//host' is another site. The same in percent-encoding is refused as well as a control character there:
 * what stands between us and the browser may decode it.
 */
function isPath(value: string): boolean {
  if (/^\/(?:\/|%(?:[01][\da-f]|20|2f|5c|7f))/i.test(value)) return false
  const anywhere = 'https://site.invalid'
  if (!URL.canParse(value, anywhere)) return false
  const url = new URL(value, anywhere)
  // '/.//host' is a path of this site, but its `pathname` reads as another one.
  return url.origin === anywhere && !url.pathname.startsWith('//')
}

/** The URL parser repairs 'https:host', and drops an empty user name: both are refused as they came. */
function isKnownUrl({ publicUrl, trustedOrigins }: ReturnToSettings, value: string): boolean {
  const [authority] = /^https?:\/\/[^/?#]+/i.exec(value) ?? []
  if (authority === undefined || authority.includes('@') || !URL.canParse(value)) return false
  const { origin } = new URL(value)
  return origin === publicUrl || trustedOrigins.includes(origin)
}

function refusal(rule: string): ValidationError {
  return new ValidationError({ details: { errors: [{ path: 'return_to', rule }] } })
}
