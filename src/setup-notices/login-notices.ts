import type { Notice } from './notices'
import type { SeenRequest } from './request-notices'

/**
 * Warns if a login begins at a host that differs from the host of the redirect URI. The first host sets the state cookie, but the callback
 * goes to the second host, where the cookie is missing.
 */
export function otherHost({ headers, app }: Pick<SeenRequest, 'headers' | 'app'>, redirectUri: string): Notice | null {
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

/** Warns about an untrusted origin. Returns null if the text is not an origin, for example `null` or text that no browser sends. */
export function refusedOrigin(origin: string): Notice | null {
  if (origin.length > 255 || !/^https?:\/\/[\w.:[\]-]+$/.test(origin)) return null
  return {
    level: 'warn',
    entry: 'origin-not-trusted',
    message: `a request from the origin ${origin} was refused (403 CSRF_VALIDATION_FAILED). If that page is yours, add the origin to trustedOrigins (AUTH_TRUSTED_ORIGINS).`,
    fields: { origin },
    about: origin,
  }
}

/** Reports that the provider rejected this application, not the person (RFC 6749 section 5.2). */
export function clientRefused(provider: string, { code, body }: { code: string | null; body: string | null }): Notice {
  return {
    level: 'error',
    entry: 'client-refused',
    message: `provider ${provider} refuses this application (${code ?? 'no error code'}): check clientSecret and clientAuthentication, and that the redirect URI is registered there.`,
    fields: { provider, error: code, body },
    about: provider,
  }
}

/** Warns about a token from the future. We never issue such a token, so the clock of the issuer or of this process is wrong. */
export function tokenFromTheFuture(issuedAt: number, now: Date): Notice | null {
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
export function guardedSignInPage(page: string): Notice {
  return {
    level: 'error',
    entry: 'sign-in-page-behind-a-login',
    message: `the sign-in page ${page} (loginUrl, AUTH_LOGIN_URL) is behind requireLogin(), so nobody can open it. Mount that page before requireLogin(), or use the guard only on pages that need a login.`,
  }
}
