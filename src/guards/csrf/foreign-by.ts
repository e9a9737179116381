import type { Request } from 'express'
import { isTrustableOrigin } from '../../core/config/web-address'
import { ConfigurationError } from '../../core/errors'
import { isOwnPageWithoutOrigin } from '../../http/same-site'

/**
 * Returns which header shows that a page of another site sent the request: `origin`, or `site` for `Sec-Fetch-Site`. Returns null if the
 * page is allowed. Allowed are the trusted origins and the origin of the request's Host header, also if the page hides its origin. This is safe, because no page can choose
 * the Host header.
 *
 * A client that sends neither `Origin` nor `Sec-Fetch-Site` passes. It is not a browser that attaches cookies, but for example curl or a
 * native app.
 */
export function foreignBy(req: Request, trustedOrigins: readonly string[]): 'origin' | 'site' | null {
  const { origin } = req.headers
  if (isOwnPageWithoutOrigin(req) || (origin !== undefined && trustedOrigins.includes(origin))) return null
  if (origin !== undefined && !isHost(req.headers.host, origin)) return 'origin'
  // The code also checks `Sec-Fetch-Site`, because the browser compares the schemes for this header. Behind a proxy, the server does not
  // know the scheme.
  const site = req.headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none' ? null : 'site'
}

/** Compares a host and an origin. The function ignores letter case and a default port. */
function isHost(host: string | undefined, origin: string): boolean {
  if (host === undefined || !URL.canParse(origin)) return false
  const url = new URL(origin)
  const here = `${url.protocol}//${host}`
  return url.origin === origin && URL.canParse(here) && new URL(here).origin === origin
}

/**
 * Checks the option trustedOrigins.
 * @throws ConfigurationError if an entry is not an origin
 */
export function originsOf(trustedOrigins: readonly string[] = []): readonly string[] {
  if (Array.isArray(trustedOrigins) && trustedOrigins.every((origin: unknown) => typeof origin === 'string' && isTrustableOrigin(origin)))
    return [...trustedOrigins]
  throw new ConfigurationError(
    'csrfGuard: trustedOrigins must be a list of origins as browsers send them, such as https://app.example.com, without wildcards (http on the loopback only), or of an app, such as capacitor://localhost or chrome-extension://<id>.',
  )
}
