import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { leadsSomewhere } from '../../../accounts/email-links/email-link'
import { sentenceOf } from '../../../core/error-sentence'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import { answerOf, type Check, error, isLoopback, type Patient, type Result, warning } from './check'

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

export const mailChecks: readonly Check[] = [
  { name: 'mail-handshake', examine: handshake },
  { name: 'mail-links-in-bodies', examine: linksInBodies },
  { name: 'mail-undo', examine: undoLinks },
]

async function handshake({ options: { mailer } }: Patient): Promise<Result> {
  if (!mailer) return { skipped: 'There is no mailer.' }
  if (typeof mailer.verify !== 'function') return { skipped: 'The mailer has no verify().' }
  try {
    await answerOf(Promise.resolve(mailer.verify()))
    return null
  } catch (problem) {
    return error(
      `The check of the mail server failed: ${sentenceOf(problem)}`,
      'No link to activate an account or to set a new password is delivered.',
      'Check host, port, user and password of the mailer, and that this machine can reach the server.',
    )
  }
}

function linksInBodies({ ctx: { settings }, options: { mailer }, isProduction }: Patient): Result {
  if (!settings.localAccountsEnabled || (mailer && !settings.returnTokenInResponse)) return null
  if (!isProduction && isLoopback(settings.publicUrl)) return null
  const report = isProduction ? error : warning
  return report(
    'Links to activate an account and to set a password are in response bodies (no mailer, or returnTokenInResponse).',
    'Any client can request the link of an address and take its account over.',
    'Pass a mailer, such as smtpMailer({ … }), and remove returnTokenInResponse.',
  )
}

function undoLinks({ ctx: { settings }, options: { mailer } }: Patient): Result {
  if (!mailer || settings.undoSeconds === 0 || leadsSomewhere(settings, 'UNDO')) return null
  return warning(
    'Notices have no undo link, because its address is unknown.',
    'If an attacker changes an account, the owner cannot undo the change with the mail about it.',
    'Set publicUrl (AUTH_PUBLIC_URL) or undoUrlTemplate (AUTH_UNDO_URL_TEMPLATE); undoSeconds: 0 turns undo links off.',
  )
}

export const processChecks: readonly Check[] = [
  { name: 'counters-shared', examine: ownCounters },
  { name: 'counters-answer', examine: silentCounters },
  { name: 'limits-off', examine: limitsOff },
  { name: 'environment', examine: developmentInPublic },
]

function ownCounters({ options, about }: Patient): Result {
  const processes = about.processes ?? (cluster.isWorker ? 2 : 1)
  if (processes < 2 || options.throttle?.counters) return null
  return warning(
    'Several processes serve the app, and each has its own counters.',
    'An attacker can try passwords in each process, and use a code once in each.',
    'Pass throttle.counters: a store of Redis or SQL (docs/limits.md).',
  )
}

async function silentCounters({ options }: Patient): Promise<Result> {
  const counters = options.throttle?.counters
  if (!counters) return { skipped: 'There is no shared store of counters.' }
  const key = `doorward:doctor:${randomUUID()}`
  try {
    const { count } = await answerOf(counters.increment(key, 60))
    await answerOf(counters.reset(key))
    if (count === 1) return null
    return error(`A new counter begins at ${count}.`, 'Rate limits refuse too early or too late.', 'Fix increment() of throttle.counters.')
  } catch (problem) {
    return error(
      `The shared store of counters does not answer: ${sentenceOf(problem)}`,
      'Meanwhile each process has its own counters.',
      'Check the connection of throttle.counters.',
    )
  }
}

function limitsOff({ options: { throttle = {} } }: Patient): Result {
  const off = (['login', 'routes', 'mfa', 'links', 'signup'] as const).filter((name) => throttle[name] === (false as unknown))
  if (off.length === 0) return null
  return error(
    `Rate limits are off: throttle.${off.join(', throttle.')}.`,
    'An attacker can guess passwords, codes and addresses without limit.',
    'Remove these options, or set limits.',
  )
}

function developmentInPublic({ ctx: { settings }, options, isProduction }: Patient): Result {
  const isTest = options.environment === 'test'
  if (isProduction || isTest || !settings.publicUrl.startsWith('https:') || isLoopback(settings.publicUrl)) return null
  return warning(
    `The app at ${settings.publicUrl} runs with the rules of development.`,
    'Set-ups that boot refuses in production are allowed.',
    'Set NODE_ENV=production, or pass environment.',
  )
}
