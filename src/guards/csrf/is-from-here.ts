import type { Request } from 'express'
import { isOrigin } from '../../config/web-address'
import { ConfigurationError } from '../../errors'

/**
 * What the browser says of the page that asks. Ours is the origin whose host is the request's Host, which no page can choose,
 * and every listed one. Clients that say nothing (curl, native apps) pass: no browser attached cookies for them.
 */
export function isFromHere(req: Request, trustedOrigins: readonly string[]): boolean {
  const { origin } = req.headers
  if (origin !== undefined && trustedOrigins.includes(origin)) return true
  if (origin !== undefined && !isHost(req.headers.host, origin)) return false
  const site = req.headers['sec-fetch-site'] // it knows the scheme too, which behind a proxy we do not
  return site === undefined || site === 'same-origin' || site === 'none'
}

/** Letter case and a default port are ways of writing one host. */
function isHost(host: string | undefined, origin: string): boolean {
  if (host === undefined || !URL.canParse(origin)) return false
  const url = new URL(origin)
  const here = `${url.protocol}//${host}`
  return url.origin === origin && URL.canParse(here) && new URL(here).origin === origin
}

/** @throws ConfigurationError */
export function originsOf(trustedOrigins: readonly string[] = []): readonly string[] {
  if (Array.isArray(trustedOrigins) && trustedOrigins.every((origin: unknown) => typeof origin === 'string' && isOrigin(origin)))
    return [...trustedOrigins]
  throw new ConfigurationError(
    'csrfGuard: trustedOrigins must be a list of origins as browsers send them, such as https://app.example.com (http on the loopback only).',
  )
}
