import * as errors from '../../../src/core/errors'
import { testSecret } from '../../support/app'
import { leftToHost } from './fuzz-host'
import type { Answered, Asked } from './send'
import { Live, type Wish } from './wish'

/** code -> status, of everything that may reach the wire. */
const catalogue: ReadonlyMap<string, number> = new Map(
  Object.values(errors)
    .filter((type): type is typeof errors.AppError => typeof type === 'function' && type.prototype instanceof errors.AppError)
    .map(({ code, status }): [string, number] => [code, status]),
)

/** What is wrong with an answer; null: nothing. */
export function complaintAbout(wish: Wish, asked: Asked, answer: Answered | null): string | null {
  if (answer === null) return asked.quirk === null ? 'no answer' : null
  const { status, headers, text } = answer
  if (isNodesOwn(asked, answer)) return null
  if (headers[leftToHost] !== undefined)
    return isElsewhere(wish) || wish.path.startsWith('/host') ? null : 'a known route was left to the host'
  if (status === 599) return "it reached the host's error handler"
  if (/\n {4}at |SQLITE_|node_modules/.test(text) || text.includes(testSecret)) return 'it shows our insides'
  const cookie = strangeCookie(headers)
  if (cookie !== null) return `it sets a cookie that is not ours: ${cookie}`
  if (!wish.path.startsWith('/host') && headers['x-content-type-options'] !== 'nosniff') return 'it lacks the security headers'
  if (status < 400) return null
  if (asked.method === 'HEAD') return text === '' ? null : 'HEAD has a body'
  return String(headers['content-type']).startsWith('text/html') ? complaintAboutPage(wish, answer) : complaintAboutEnvelope(wish, answer)
}

/** Node's parser refuses what is no HTTP before anybody of us sees it: without a body, or a header of ours. */
function isNodesOwn({ quirk, headers }: Asked, { status, headers: answered, text }: Answered): boolean {
  const isBare =
    (text === '' || text === '0\r\n\r\n') && answered['content-type'] === undefined && answered['x-content-type-options'] === undefined
  const isLarge = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0) > 12_000
  return isBare && (quirk !== null || isLarge) && [400, 408, 431].includes(status)
}

/** A segment that is empty, or two, or none of the client's text, makes another path. */
function isElsewhere({ parameters, quirk }: Wish): boolean {
  return quirk !== null || parameters.some(({ value, raw }) => raw || value === '' || (value instanceof Live && value.damage !== null))
}

const ourCookies = [
  'access_token',
  'auth_hint',
  'refresh_token',
  'auth_session',
  'oauth_state',
  'oauth_binding',
  'oauth_browser',
  'signup_binding',
  'csrf_binding',
  'csrf_token',
  'auth_device',
]
/** Browsers may hold a cookie without a name, which they send as one of ours. */
const namelessExpiry = /^=none;.*; Expires=Thu, 01 Jan 1970 00:00:00 GMT$/

function strangeCookie(headers: Answered['headers']): string | null {
  const lines = [headers['set-cookie'] ?? []].flat()
  return lines.find((line) => !ourCookies.includes(line.split('=')[0] ?? '') && !namelessExpiry.test(line)) ?? null
}

function complaintAboutPage({ path }: Wish, { status }: Answered): string | null {
  if (status >= 500) return `a page of ${status}`
  return /:token$|mfa\/verify$|\/callback$/.test(path) ? null : 'a page where the envelope belongs'
}

const providerCodes = ['OAUTH_AUDIENCE_UNVERIFIABLE', 'OAUTH_ERROR', 'OAUTH_PROVIDER_UNAVAILABLE']

function complaintAboutEnvelope({ path }: Wish, { status, headers, text }: Answered): string | null {
  const body = jsonOf(text)
  if (body === null || Object.keys(body).sort().join() !== 'code,detail,details') return `no envelope: ${text.slice(0, 200)}`
  const { code, detail, details } = body
  if (catalogue.get(String(code)) !== status) return `${status} is not the status of ${String(code)}`
  if (typeof detail !== 'string' || typeof details !== 'object' || details === null || Array.isArray(details))
    return 'an envelope of other types'
  if (status >= 500 && !(path.startsWith('/oauth/:provider') && providerCodes.includes(String(code)))) return `${status} ${String(code)}`
  if (status === 429 && headers['retry-after'] === undefined) return '429 without Retry-After'
  return status === 401 && headers['www-authenticate'] === undefined ? '401 without WWW-Authenticate' : null
}

function jsonOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null // just checked
  } catch {
    return null
  }
}
