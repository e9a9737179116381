import { seeTroubleshooting } from '../../../core/troubleshooting'
import { type Check, error, isLoopback, type Patient, type Result, warning } from './check'

export const webChecks: readonly Check[] = [
  { name: 'public-url', examine: noPublicUrl },
  { name: 'cookie-secure', examine: insecureCookies },
  { name: 'cookie-domain', examine: foreignCookieDomain },
  { name: 'cookie-samesite', examine: crossSiteCookies },
  { name: 'proxy-untrusted', examine: untrustedProxy },
  { name: 'proxy-everyone', examine: trustsEverybody },
  { name: 'timing-grid', examine: noTimingGrid },
  { name: 'seen-in-requests', examine: seenInRequests },
]

function noPublicUrl({ ctx: { settings } }: Patient): Result {
  if (settings.publicUrl !== '') return null
  return warning(
    'publicUrl (AUTH_PUBLIC_URL) is not set.',
    'Redirect URIs, mailed links and the cross-site check need it.',
    'Set it to the address that people see, such as https://app.example.com.',
  )
}

function usesCookies({ ctx: { settings } }: Patient): boolean {
  return settings.tokenDelivery !== 'bearer' || settings.oauthEnabled
}

function insecureCookies(patient: Patient): Result {
  const { cookieSecure, publicUrl } = patient.ctx.settings
  if (cookieSecure || !usesCookies(patient) || isLoopback(publicUrl) || !(patient.isProduction || publicUrl.startsWith('https:')))
    return null
  return error(
    'cookieSecure (AUTH_COOKIE_SECURE) is false.',
    'One request over plain http, which an attacker in the network can cause, reveals the session.',
    'Remove the setting, or set it to true.',
  )
}

function foreignCookieDomain({ ctx: { settings } }: Patient): Result {
  const { cookieDomain, publicUrl } = settings
  if (cookieDomain === null || publicUrl === '') return null
  const { hostname } = new URL(publicUrl)
  if (hostname === cookieDomain || hostname.endsWith(`.${cookieDomain}`)) return null
  return error(
    `cookieDomain (AUTH_COOKIE_DOMAIN) is ${cookieDomain}, and the app is at ${hostname}.`,
    'Browsers drop cookies of another domain, so nobody stays signed in.',
    `Set it to ${hostname} or a domain above it, or remove it.`,
  )
}

function crossSiteCookies(patient: Patient): Result {
  const { cookieSamesite, trustedOrigins } = patient.ctx.settings
  if (cookieSamesite !== 'none' || trustedOrigins.length > 0 || !usesCookies(patient)) return null
  return warning(
    "cookieSamesite (AUTH_COOKIE_SAMESITE) is 'none', and no other origin is trusted.",
    'Browsers send the cookies with requests of every site, and nothing in your settings needs that.',
    "Remove the setting ('lax'), or add the origin of your front end to trustedOrigins.",
  )
}

function untrustedProxy({ ctx: { settings }, about: { app } }: Patient): Result {
  if (!app) return { skipped: 'The app is unknown: export it as `app` beside `auth`, or pass { app }.' }
  if (app.get('trust proxy') || !settings.publicUrl.startsWith('https:') || isLoopback(settings.publicUrl)) return null
  return warning(
    'The app is served over https, and Express trusts no proxy.',
    'Behind a proxy all visitors have the same address, so one of them can use up the rate limit of all.',
    "Name your proxies: app.set('trust proxy', 'loopback'). Without a proxy leave it as it is.",
  )
}

function trustsEverybody({ about: { app } }: Patient): Result {
  if (!app) return { skipped: 'The app is unknown: export it as `app` beside `auth`, or pass { app }.' }
  if (app.get('trust proxy') !== true) return null
  return error(
    "Express trusts every proxy (app.set('trust proxy', true)).",
    'A client can write any address into X-Forwarded-For, and gets a new rate limit with each request.',
    "Name your proxies by number or address: app.set('trust proxy', 1).",
  )
}

function noTimingGrid({ ctx: { settings }, isProduction }: Patient): Result {
  if (!isProduction || settings.timingGridMilliseconds > 0) return null
  return warning(
    'timingGridMilliseconds (AUTH_TIMING_GRID_MILLISECONDS) is 0.',
    'The time of a response reveals whether an address has an account.',
    'Remove the setting.',
  )
}

/** Repeats the notices of the log, each text once, because nobody may have read that line. */
function seenInRequests({ ctx: { notices } }: Patient): Result {
  const byText = new Map(notices.told().map((notice) => [notice.message, notice]))
  return [...byText.values()].map(({ level, entry, message }) => {
    const report = level === 'warn' ? warning : error
    return report(
      `${message.charAt(0).toUpperCase()}${message.slice(1)}`,
      'Requests showed this since the process started, and the log has it once.',
      `${seeTroubleshooting(entry)}.`,
    )
  })
}
