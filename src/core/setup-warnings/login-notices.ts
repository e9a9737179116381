import type { SetupWarning } from './notices'
import type { SeenRequest } from './request-notices'

/**
 * Warns if a login begins at a host that differs from the host of the redirect URI. The first host sets the state cookie, but the callback
 * goes to the second host, where the cookie is missing.
 */
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

/** Returns the host in its normal form. Returns null if the text is not a host name. */
function hostOf(protocol: string, host: string | undefined): string | null {
  if (host === undefined || !/^[\w.:[\]-]{1,255}$/.test(host) || !URL.canParse(`${protocol}//${host}`)) return null
  return new URL(`${protocol}//${host}`).host
}

/** Warns about a request that the cross-site rule refused. Returns null if `Origin` is a text that no browser sends. */
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

/** Warns about a script that began a login at a provider. Only the browser itself can follow the redirect to the provider. */
export const loginByScript: SetupWarning = {
  level: 'warn',
  entry: 'a-login-by-fetch',
  message:
    'a script began a login at a provider with fetch or XMLHttpRequest, and was refused (403 CSRF_VALIDATION_FAILED). A login at a provider is a navigation: use a link, or location.assign(url).',
}

/** Reports that the provider rejected this application, not the person (RFC 6749 section 5.2). */
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

/** Warns that a second use of a refresh token ended a session. An attacker causes this, and so do two tabs that refresh at once. */
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

/** Warns about a token from the future. We never issue such a token, so the clock of the issuer or of this process is wrong. */
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

/** Reports a sign-in page that redirects to itself. Nobody can open such a page. */
export function guardedSignInPage(page: string): SetupWarning {
  return {
    level: 'error',
    entry: 'sign-in-page-behind-a-login',
    message: `the sign-in page ${page} (loginUrl, AUTH_LOGIN_URL) is behind requireLogin(), so nobody can open it. Mount that page before requireLogin(), or use the guard only on pages that need a login.`,
  }
}
