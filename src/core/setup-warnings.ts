import type { IncomingHttpHeaders } from 'node:http'
import { ConfigurationError } from './errors'
import type { Logger } from './logger'
import { seeTroubleshooting } from './troubleshooting'

export interface SetupWarning {
  readonly level: 'warn' | 'error'
  /** Also the name of the entry in docs/troubleshooting.md. */
  readonly entry: string
  readonly message: string
  readonly fields?: object
  /** With a subject, logged once for each of the first ten subjects. Without, logged once. */
  readonly about?: string
}

export interface SetupWarnings {
  tell(notice: SetupWarning): void
  /** For `doctor` without a log line, because the log has its own line. Replaces the last notice about the same subject. */
  keep(notice: SetupWarning): void
  told(): readonly SetupWarning[]
}

export function lineOf({ message, entry }: SetupWarning): string {
  return `doorward: ${message} ${seeTroubleshooting(entry)}`
}

/** A client can choose the subject of a notice, so the number is limited. */
const mostOfOneKind = 10

/** Logs each notice only once (see `about`), even if many requests cause it. */
export function createSetupWarnings(logger: Logger): SetupWarnings {
  const told: SetupWarning[] = []
  return {
    tell(notice) {
      const { level, entry, fields = {}, about } = notice
      const known = told.filter((other) => other.entry === entry)
      if (known.length >= mostOfOneKind || known.some((other) => other.about === about)) return
      told.push(notice)
      logger[level](fields, lineOf(notice))
    },
    keep(notice) {
      const same = told.findIndex(({ entry, about }) => entry === notice.entry && about === notice.about)
      if (same !== -1) told[same] = notice
      else if (told.filter(({ entry }) => entry === notice.entry).length < mostOfOneKind) told.push(notice)
    },
    told: () => told,
  }
}

/** Logs once for each level. `warn`: the provider does not respond. `error`: an unusable document, mostly of a wrong issuer. */
export function discoveryNotices(provider: string, logger: Logger): (error: unknown) => void {
  const told = new Set<'warn' | 'error'>()
  return (error) => {
    const level = error instanceof ConfigurationError ? 'error' : 'warn'
    if (told.has(level)) return
    told.add(level)
    const reason = error instanceof Error ? error.message : String(error) // our own text with the issuer and the fault
    logger[level](
      { provider, reason },
      `doorward: provider ${provider} is not ready. Its logins get 502 until doorward can read its metadata.`,
    )
  }
}

/** The login's host sets the state cookie, but the callback goes to another host, where the cookie is missing. */
export function otherHost({ headers, app }: Pick<SeenRequest, 'headers' | 'app'>, redirectUri: string): SetupWarning | null {
  const forwarded = app.get('trust proxy') ? [headers['x-forwarded-host'] ?? []].flat()[0]?.split(',')[0]?.trim() : undefined
  const host = forwarded ?? headers.host
  if (redirectUri.split('/', 3)[2] === host) return null // the usual case, without parsing
  const { protocol, host: expected } = new URL(redirectUri)
  const seen = hostOf(protocol, host)
  if (seen === null || seen === expected) return null
  return {
    level: 'warn',
    entry: 'other-host',
    message: `a social login began at the host ${seen}, but the provider sends people back to ${expected}, where the login's cookie is missing (401 OAUTH_STATE_MISMATCH). Open the app at ${expected}, or set publicUrl (AUTH_PUBLIC_URL) to the address in use.`,
    fields: { host: seen, expected },
  }
}

function hostOf(protocol: string, host: string | undefined): string | null {
  if (host === undefined || !/^[\w.:[\]-]{1,255}$/.test(host) || !URL.canParse(`${protocol}//${host}`)) return null
  return new URL(`${protocol}//${host}`).host
}

/** Null: `Origin` is a text that no browser sends. */
export function foreignRequest({ headers: { origin, ...headers } }: Pick<SeenRequest, 'headers'>): SetupWarning | null {
  const site = /^[a-z-]{1,20}$/.exec(String(headers['sec-fetch-site'] ?? ''))?.[0] ?? null
  if (origin === undefined) return { ...anotherSite, fields: { site } }
  if (origin === 'null') return { ...hiddenOrigin, fields: { site } }
  if (origin.length > 255 || !/^[a-z][a-z\d-]*:\/\/[\w.:[\]-]+$/.test(origin)) return null
  return {
    level: 'warn',
    entry: 'origin-not-trusted',
    message: `a request from the origin ${origin} was refused (403 CSRF_VALIDATION_FAILED). If that page is yours, add the origin to trustedOrigins (AUTH_TRUSTED_ORIGINS).`,
    fields: { origin },
    about: origin,
  }
}

const hiddenOrigin: SetupWarning = {
  level: 'warn',
  entry: 'origin-null',
  message:
    "a request with Origin: null was refused (403 CSRF_VALIDATION_FAILED), because the browser did not say Sec-Fetch-Site: same-origin. If the page is yours, it hides its origin: send Referrer-Policy: strict-origin-when-cross-origin (helmet: referrerPolicy: { policy: 'strict-origin-when-cross-origin' }), serve it over https, and show it neither from a file nor in a sandboxed frame.",
}

const anotherSite: SetupWarning = {
  level: 'warn',
  entry: 'another-site',
  message:
    'a request without Origin was refused (403 CSRF_VALIDATION_FAILED), because the browser said by Sec-Fetch-Site that a page of another site or subdomain sent it. If the page is yours, send the request with fetch from a page of publicUrl or of trustedOrigins.',
}

/** Only the browser itself can follow the redirect to the provider. */
export const loginByScript: SetupWarning = {
  level: 'warn',
  entry: 'a-login-by-fetch',
  message:
    'a script began a login at a provider with fetch or XMLHttpRequest, and was refused (403 CSRF_VALIDATION_FAILED). A login at a provider is a navigation: use a link, or location.assign(url).',
}

/** The provider rejected this application, not the person (RFC 6749 section 5.2). */
export function clientRefused(
  provider: string,
  { code, body, isEncoded }: { code: string | null; body: string | null; isEncoded: boolean },
): SetupWarning {
  const encoded = isEncoded
    ? " clientId or clientSecret has special characters, which client_secret_basic encodes, and some providers do not decode them: try clientAuthentication: 'client_secret_post', or a secret of letters and digits."
    : ''
  return {
    level: 'error',
    entry: 'client-refused',
    message: `provider ${provider} refuses this application (${code ?? 'no error code'}): check clientSecret and clientAuthentication, and that the redirect URI is registered there.${encoded}`,
    fields: { provider, error: code, body },
    about: provider,
  }
}

/** An attacker causes this, and so do two tabs that refresh at once. */
export function reusedRefreshToken(sessionId: string, graceSeconds: number): SetupWarning {
  const fix =
    graceSeconds === 0
      ? 'and set refreshReuseGraceSeconds (AUTH_REFRESH_REUSE_GRACE_SECONDS) to 10'
      : `because the second use came after refreshReuseGraceSeconds (AUTH_REFRESH_REUSE_GRACE_SECONDS), ${graceSeconds} seconds`
  return {
    level: 'warn',
    entry: 'a-refresh-token-came-twice',
    message: `a used refresh token came again, so its session ended (401 INVALID_TOKEN). If nobody stole the token, two tabs refreshed at once, or a response was lost: let the client refresh one at a time, ${fix}.`,
    fields: { sessionId },
    about: sessionId,
  }
}

/** We never issue a token from the future, so the clock of the issuer or of this process is wrong. */
export function tokenFromTheFuture(issuedAt: number, now: Date): SetupWarning | null {
  const secondsAhead = issuedAt - Math.floor(now.getTime() / 1000)
  if (!(secondsAhead > 60)) return null
  return {
    level: 'warn',
    entry: 'clock',
    message:
      'an access token is from the future. The clock of this process, or of the process that issued the token, is wrong. So tokens expire too early or too late. Synchronize the clocks (NTP).',
    fields: { secondsAhead },
  }
}

/** Nobody can open a sign-in page that redirects to itself. */
export function guardedSignInPage(page: string): SetupWarning {
  return {
    level: 'error',
    entry: 'sign-in-page-behind-a-login',
    message: `the sign-in page ${page} (loginUrl, AUTH_LOGIN_URL) is behind requireLogin(), so nobody can open it. Mount that page before requireLogin(), or use the guard only on pages that need a login.`,
  }
}

interface SeenRequest {
  readonly headers: IncomingHttpHeaders
  readonly secure: boolean
  /** The path at which Express mounted the router. */
  readonly baseUrl: string
  readonly body?: unknown
  readonly readableDidRead: boolean
  readonly app: { get(name: string): unknown }
}

export function untrustedProxy({ headers, app }: SeenRequest): SetupWarning | null {
  const header = headers['x-forwarded-for'] !== undefined ? 'X-Forwarded-For' : headers['forwarded'] !== undefined ? 'Forwarded' : null
  if (header === null || app.get('trust proxy')) return null
  return {
    level: 'warn',
    entry: 'behind-a-proxy',
    message: `a request has the header ${header}, but Express trusts no proxy. If your proxy sent the header, every visitor has the proxy's address, and all visitors share one rate limit. Then one visitor can make every login fail with 429. Name your proxies: app.set('trust proxy', 'loopback').${header === 'Forwarded' ? ' Express reads only X-Forwarded-For, so let the proxy send X-Forwarded-For too.' : ''}`,
  }
}

/** Rate limits do not tell a client from others. @param ip `req.ip`, which `readAddress` cannot read */
export function unreadableClient(ip: string | undefined): SetupWarning {
  return {
    level: 'warn',
    entry: 'client-address',
    message:
      "the address of a client cannot be read, so the rate limits per client do not count this client. The limits per email address still count. Let your proxy write the client's IP address into X-Forwarded-For, and name your proxies. If the app listens on a Unix socket, name them by number: app.set('trust proxy', 1).",
    fields: { address: ip !== undefined && /^[\x21-\x7e]{1,45}$/.test(ip) ? ip : null },
  }
}

export function trustsEveryProxy({ app }: SeenRequest): SetupWarning | null {
  if (app.get('trust proxy') !== true) return null
  return {
    level: 'warn',
    entry: 'trust-every-proxy',
    message:
      "the app trusts every proxy ('trust proxy' is true), so a client can send any address and avoid every rate limit. Name your proxies instead.",
  }
}

/** Warns only if the scheme is known: behind an untrusted proxy every request looks like plain http. */
export function secureCookiesOverHttp(
  request: SeenRequest,
  { cookieSecure, publicUrl }: { cookieSecure: boolean; publicUrl: string },
): SetupWarning | null {
  if (!cookieSecure || request.secure || !(publicUrl.startsWith('http:') || cameThroughTrustedProxy(request))) return null
  return {
    level: 'warn',
    entry: 'cookies-over-http',
    message:
      'a request came over plain http, and cookieSecure is true, so browsers drop our cookies. Set cookieSecure (AUTH_COOKIE_SECURE) to false while you develop, or serve the app over https.',
  }
}

/** Other requests, such as a health check from this machine, do not show which scheme people use. */
function cameThroughTrustedProxy({ headers, app }: SeenRequest): boolean {
  const isForwarded = headers['x-forwarded-proto'] !== undefined || headers['x-forwarded-for'] !== undefined
  return isForwarded && Boolean(app.get('trust proxy'))
}

/** The end of `prefix` is correct too: a proxy may have removed the first part. Letter case does not count, as in Express. */
export function otherMount({ baseUrl }: SeenRequest, prefix: string): SetupWarning | null {
  if (baseUrl !== '' && prefix.toLowerCase().endsWith(baseUrl.toLowerCase())) return null
  // With a mount such as /:tenant/auth the client chooses the path, so only a possible prefix is repeated.
  const mountedAt = /^(?:\/[A-Za-z0-9._~-]{1,64}){0,8}$/.test(baseUrl) ? baseUrl || '/' : null
  return {
    level: 'warn',
    entry: 'mount-and-prefix',
    message: `the router is mounted at another path than option prefix says. Redirect URIs and cookie paths use the option. ${mountFix(mountedAt, prefix)}`,
    fields: { prefix, mountedAt },
  }
}

function mountFix(mountedAt: string | null, prefix: string): string {
  return mountedAt === null || mountedAt === '/'
    ? `Mount it with app.use('${prefix}', auth).`
    : `Pass prefix: '${mountedAt}' to createAuthRouter(), or mount it with app.use('${prefix}', auth).`
}

/** The routes need an object, and only parsers of JSON or forms leave one. */
export function unparsedBody(req: SeenRequest): SetupWarning | null {
  const left = Buffer.isBuffer(req.body) ? 'a Buffer' : typeof req.body === 'string' ? 'a string' : null
  if (left === null || !req.readableDidRead) return null // nearly every request ends at the first check; Node's getter is slower
  return {
    level: 'warn',
    entry: 'body-parser',
    message: `a body parser in front of the router left ${left}, so the routes respond 422. Mount the router before express.raw() or express.text(), or limit these parsers to other paths.`,
  }
}

/** The other cookie is of another app on a parent domain, or a subdomain planted it. */
export function doubledCookie(name: string): SetupWarning {
  return {
    level: 'warn',
    entry: 'two-cookies-with-one-name',
    message: `a request has two cookies named ${name}. Another app on this domain or on a domain above it uses the same name, for example production above staging. Give each app its own accessCookieName, refreshCookieName and sessionCookieName. If you have no other app there, a subdomain may have planted the cookie.`,
    fields: { cookie: name },
    about: name,
  }
}
