import type { Request } from 'express'
import { isOrigin } from '../../config/web-address'
import { ConfigurationError } from '../../errors'

/**
 * Returns by what the browser says that another site asks; null: the page is ours. Ours is the origin whose host is the
 * request's Host, which no page can choose, and every listed one. Clients that say nothing (curl, native apps) pass: no browser
 * attached cookies for them.
 */
export function foreignBy(req: Request, trustedOrigins: readonly string[]): 'origin' | 'site' | null {
  const { origin } = req.headers
  if (origin !== undefined && trustedOrigins.includes(origin)) return null
  if (origin !== undefined && !isHost(req.headers.host, origin)) return 'origin'
  const site = req.headers['sec-fetch-site'] // it knows the scheme too, which behind a proxy we do not
  return site === undefined || site === 'same-origin' || site === 'none' ? null : 'site'
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
    'csrfGuard: trustedOrigins must be a list of origins as browsers send them, such as https://app.example.com, without wildcards (http on the loopback only).',
  )
}
