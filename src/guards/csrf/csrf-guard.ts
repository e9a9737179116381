import type { Request, RequestHandler } from 'express'
import { isTrustableOrigin } from '../../core/config/web-address'
import { ConfigurationError, CsrfValidationFailedError } from '../../core/errors'
import { consoleLogger, safely } from '../../core/logger'
import { createSetupWarnings, foreignRequest, type SetupWarnings } from '../../core/setup-warnings'
import type { CookieSite } from '../../http/cookies'
import { step } from '../../http/routes'
import { isOwnPageWithoutOrigin, isSafeMethod } from '../../http/same-site'
import { onlyValue } from '../../http/send'
import { isObject, refuseUnknownOptions } from '../../options'
import { hasBearer } from '../../sessions/current-auth'
import { isSameText } from '../internal-token'
import { type GuardContext, logRefusal, refuse, refusing } from '../refusing'
import { anySite, readCsrfCookie, type SignerOptions, type SignerSite, type TokenSource, tokenSigner } from './csrf-token'

export interface CsrfGuardOptions extends SignerOptions {
  /** Full paths (from the app's root) that the guard does not check, nor any path below. `/webhooks` does not include `/webhooks-admin`. */
  exclude?: readonly string[]
  /** The secret of csrfToken(). The guard rejects a token with a wrong signature, and a token for another session. */
  secret?: string | readonly string[]
  /** Other origins with pages that may send requests. The origin in the request's Host header is always allowed. */
  trustedOrigins?: readonly string[]
}

/**
 * Rejects requests that another site made a browser send, with 403 CSRF_VALIDATION_FAILED. Every method except GET, HEAD and OPTIONS needs
 * the cookie `csrf_token`, and the header `X-CSRF-Token` with the same value. If the browser sends the page's origin (`Origin`,
 * `Sec-Fetch-Site`), it must be allowed. Put the guard after a middleware that overrides methods: it checks the method that Express uses
 * for its routes.
 * @throws ConfigurationError for a wrong option
 */
export function csrfGuard(options: CsrfGuardOptions = {}): RequestHandler {
  if (!isObject(options))
    throw new ConfigurationError(
      'csrfGuard() takes an object: { exclude, secret, session, sessionCookieName, accessCookieName, trustedOrigins }.',
    )
  refuseUnknownOptions('csrfGuard', options, csrfOptionNames)
  return refusing(csrfCheck('csrfGuard', options, { notices: createSetupWarnings(safely(consoleLogger)) }))
}

const csrfOptionNames = ['exclude', 'secret', 'session', 'sessionCookieName', 'accessCookieName', 'trustedOrigins'] as const

type CsrfReason = 'origin' | 'site' | 'no_cookie' | 'no_token' | 'mismatch' | 'signature'

/** Throws a CsrfValidationFailedError, and logs where a foreign request came from. */
function csrfCheck(
  where: string,
  options: CsrfGuardOptions,
  {
    notices,
    tokenOf = headerToken,
    site,
  }: { notices: SetupWarnings; tokenOf?: (req: Request) => string | null; site?: CookieSite & SignerSite },
): (req: Request) => void {
  const isExcluded = excludedPaths(options.exclude)
  const trustedOrigins = originsOf(options.trustedOrigins)
  const signer = tokenSigner(where, options, site)

  return (req) => {
    if (isSafeMethod(req.method) || isExcluded(req)) return
    const foreign = foreignBy(req, trustedOrigins)
    if (foreign) {
      const notice = foreignRequest(req)
      if (notice) notices.tell(notice)
      throw refusal(foreign)
    }
    const cookie = readCsrfCookie(site ?? anySite, req, signer)
    if (!cookie) throw refusal('no_cookie')
    const token = tokenOf(req)
    if (!token) throw refusal('no_token')
    if (!isSameText(cookie, token)) throw refusal('mismatch')
    if (signer && !signer.accepts(cookie, req)) throw refusal('signature')
  }
}

function headerToken(req: Request): string | null {
  return onlyValue(req, 'x-csrf-token')
}

function refusal(reason: CsrfReason): CsrfValidationFailedError {
  return new CsrfValidationFailedError({ details: { reason } })
}

/**
 * Compares whole segments from the app's root of the path that Express uses, without case unless `case sensitive routing`. Never excludes a
 * path that a later handler could read differently: with `..`, `%2e`, `//`, `\`, or encoded slashes.
 * @throws ConfigurationError for an invalid path
 */
function excludedPaths(exclude: readonly string[] = []): (req: Request) => boolean {
  if (!Array.isArray(exclude)) throw new ConfigurationError('csrfGuard: exclude must be a list of paths.')
  const prefixes = exclude.map(segmentsOfPrefix)
  if (prefixes.length === 0) return () => false

  return (req) => {
    if (!req.app) return false // no request of Express, so that no route of it was chosen
    const path = req.baseUrl + req.path
    if (!isPlain(path)) return false
    const sameCase = req.app.enabled('case sensitive routing') ? (text: string) => text : lowerAscii
    const segments = sameCase(path).split('/')
    return prefixes.some((prefix) => prefix.every((segment, index) => sameCase(segment) === segments[index]))
  }
}

/** In the encoding of a request's path, because Express compares encoded paths: `%6f` and `o` differ. */
function segmentsOfPrefix(prefix: unknown): readonly string[] {
  const isPath = typeof prefix === 'string' && /^\/[^/]/.test(prefix) && !/[?#*%:(){}]/.test(prefix) && prefix.isWellFormed()
  if (!isPath || !isPlain(encodeURI(prefix)))
    throw new ConfigurationError(
      'csrfGuard: exclude needs full paths such as /webhooks. A path has no pattern, no /./ or /../ and no percent-encoding.',
    )
  return encodeURI(prefix).replace(/\/$/, '').split('/')
}

/** True if every server reads the path in the same way. */
function isPlain(path: string): boolean {
  if (!/^(\/[^/]+)*\/?$/.test(path) || /[\\\0]|%(00|25|2f|5c)/i.test(path)) return false
  return path.split('/').every((segment) => !isDots(segment))
}

/** `.`, `..` and their encodings, also before `;…`, because some servers cut `;…` off first. */
function isDots(segment: string): boolean {
  return /^(\.|%2e){1,2}(;|%3b|$)/i.test(segment)
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/**
 * Null: the page is allowed, by its origin or by the request's Host header, which no page can choose. `site`: `Sec-Fetch-Site`. A client
 * that sends neither header is not a browser that attaches cookies, but for example curl or a native app. It passes.
 */
function foreignBy(req: Request, trustedOrigins: readonly string[]): 'origin' | 'site' | null {
  const { origin } = req.headers
  if (isOwnPageWithoutOrigin(req) || (origin !== undefined && trustedOrigins.includes(origin))) return null
  if (origin !== undefined && !isHost(req.headers.host, origin)) return 'origin'
  // For `Sec-Fetch-Site` the browser compares the schemes. Behind a proxy, the server does not know the scheme.
  const site = req.headers['sec-fetch-site']
  return site === undefined || site === 'same-origin' || site === 'none' ? null : 'site'
}

/** Ignores letter case and a default port. */
function isHost(host: string | undefined, origin: string): boolean {
  if (host === undefined || !URL.canParse(origin)) return false
  const url = new URL(origin)
  const here = `${url.protocol}//${host}`
  return url.origin === origin && URL.canParse(here) && new URL(here).origin === origin
}

function originsOf(trustedOrigins: readonly string[] = []): readonly string[] {
  if (Array.isArray(trustedOrigins) && trustedOrigins.every((origin: unknown) => typeof origin === 'string' && isTrustableOrigin(origin)))
    return [...trustedOrigins]
  throw new ConfigurationError(
    'csrfGuard: trustedOrigins must be a list of origins as browsers send them, such as https://app.example.com, without wildcards (http on the loopback only), or of an app, such as capacitor://localhost or chrome-extension://<id>.',
  )
}

/** No browser adds a Bearer header by itself, so such a request passes. The guard behind rejects a bad token. */
export function siteCsrf(ctx: GuardContext, options: CsrfGuardOptions): RequestHandler {
  const { settings, logger, notices } = ctx
  if (isObject(options)) refuseUnknownOptions('guards.csrf', options, csrfOptionNames)
  const { publicUrl, trustedOrigins, sessionCookieName, accessCookieName } = settings
  const known = [...(publicUrl === '' ? [] : [publicUrl]), ...trustedOrigins, ...(options.trustedOrigins ?? [])]
  const check = csrfCheck(
    'guards.csrf',
    { sessionCookieName, accessCookieName, ...options, trustedOrigins: known },
    { notices, tokenOf: sentToken, site: ctx },
  )
  return step(
    (req) => (hasBearer(req) ? undefined : check(req)),
    (error, req, res, next) => {
      logRefusal(logger, error)
      refuse(req, res, next, error, ctx)
    },
  )
}

/** With the names and attributes of the router's cookies, under a key of `jwtSecret`. */
export function siteTokens(ctx: Pick<GuardContext, 'settings' | 'prefix' | 'keys' | 'now'>): TokenSource {
  const { sessionCookieName, accessCookieName, cookieSecure: secure, cookieSamesite: sameSite } = ctx.settings
  return { signer: tokenSigner('auth.csrfToken', { sessionCookieName, accessCookieName, secure }, ctx), secure, sameSite, site: ctx }
}

/** A page without script uses the hidden form field. */
function sentToken(req: Request): string | null {
  return headerToken(req) ?? formToken(req)
}

/** Only from a form, because a script that sends JSON can set the header. */
function formToken(req: Request): string | null {
  if (!/^(?:application\/x-www-form-urlencoded|multipart\/form-data)\b/i.test(req.headers['content-type'] ?? '')) return null
  const { _csrf: token } = Object(req.body) as { _csrf?: unknown } // a parser of the host can set any value
  return typeof token === 'string' ? token : null
}
