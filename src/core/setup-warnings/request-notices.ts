import type { IncomingHttpHeaders } from 'node:http'
import type { SetupWarning } from './notices'

/** The parts of a request that these notices read. Express's `Request` has all of these parts. */
export interface SeenRequest {
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

/** Warns that rate limits do not tell a client from others. @param ip `req.ip`, which `readAddress` cannot read */
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

/**
 * Warns about secure cookies over plain http. Behind an untrusted proxy every request looks like plain http. Therefore the function warns
 * only if the scheme is known.
 */
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

/**
 * Returns true if a trusted proxy forwarded the request. Other requests, such as a health check from this machine, do not show which scheme
 * people use.
 */
function cameThroughTrustedProxy({ headers, app }: SeenRequest): boolean {
  const isForwarded = headers['x-forwarded-proto'] !== undefined || headers['x-forwarded-for'] !== undefined
  return isForwarded && Boolean(app.get('trust proxy'))
}

/**
 * Warns if the mount path differs from `prefix`. A mount path that is the end of `prefix` is correct too, because a proxy may have removed
 * the first part of the public path. Letter case does not count, because Express ignores it.
 */
export function otherMount({ baseUrl }: SeenRequest, prefix: string): SetupWarning | null {
  if (baseUrl !== '' && prefix.toLowerCase().endsWith(baseUrl.toLowerCase())) return null
  // For a mount such as /:tenant/auth, the client chooses the path. Therefore the message repeats the path only if the path can be a
  // prefix.
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

/** Warns about a body parser that leaves no object. The routes need an object, and only parsers of JSON or forms leave an object. */
export function unparsedBody(req: SeenRequest): SetupWarning | null {
  const left = Buffer.isBuffer(req.body) ? 'a Buffer' : typeof req.body === 'string' ? 'a string' : null
  if (left === null || !req.readableDidRead) return null // nearly every request ends at the first check; Node's getter is slower
  return {
    level: 'warn',
    entry: 'body-parser',
    message: `a body parser in front of the router left ${left}, so the routes respond 422. Mount the router before express.raw() or express.text(), or limit these parsers to other paths.`,
  }
}

/** Warns about two cookies with one name. The other cookie is of another app on a parent domain, or a subdomain planted it. */
export function doubledCookie(name: string): SetupWarning {
  return {
    level: 'warn',
    entry: 'two-cookies-with-one-name',
    message: `a request has two cookies named ${name}. Another app on this domain or on a domain above it uses the same name, for example production above staging. Give each app its own accessCookieName, refreshCookieName and sessionCookieName. If you have no other app there, a subdomain may have planted the cookie.`,
    fields: { cookie: name },
    about: name,
  }
}
