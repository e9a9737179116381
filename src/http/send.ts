import type { Request, Response } from 'express'

/**
 * Sets headers for every response of the library. No cache may store the response, and no page may show it in a frame. Browsers must not
 * guess the type of the response, or send its URL to another site as the referrer (RFC 6749 section 5.1; RFC 9700 section 4.2.4).
 */
export function setSecurityHeaders(res: Response): void {
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('Pragma', 'no-cache')
  res.setHeader('Referrer-Policy', 'no-referrer')
  res.setHeader('X-Content-Type-Options', 'nosniff')
  res.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'")
}

/**
 * Sends JSON without `res.json`, so that the host's settings `json spaces`, `json replacer`, `etag` and `json escape` do not change the
 * response. For example, an ETag would allow a cache to answer a conditional request.
 */
export function sendJson(res: Response, status: number, body: unknown): void {
  sendJsonText(res, status, JSON.stringify(body))
}

/** Sends a text that is already JSON. */
export function sendJsonText(res: Response, status: number, text: string): void {
  res.statusCode = status
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.end(text)
}

/**
 * Sends a built-in page. The page may load only its own style sheet, and its form may post only to this site. Browsers apply the form rule
 * also to a redirect after the form. So `formTargets` lists the origins of such redirects.
 */
export function sendHtml(
  res: Response,
  status: number,
  page: string,
  { styleNonce, formTargets = [], referrerPolicy }: { styleNonce: string; formTargets?: readonly string[]; referrerPolicy: string },
): void {
  res.statusCode = status
  res.setHeader('Referrer-Policy', referrerPolicy)
  res.setHeader('Content-Type', 'text/html; charset=utf-8')
  res.setHeader(
    'Content-Security-Policy',
    `default-src 'none'; style-src 'nonce-${styleNonce}'; form-action ${["'self'", ...formTargets].join(' ')}; frame-ancestors 'none'; base-uri 'none'`,
  )
  res.end(page)
}

export function sendEmpty(res: Response): void {
  res.statusCode = 204
  res.end()
}

/** Redirects after a form. The browser loads the next page with GET (RFC 9110 section 15.4.4). */
export function sendSeeOther(res: Response, url: string): void {
  res.statusCode = 303
  res.setHeader('Location', url)
  res.end()
}

/** Redirects without `res.redirect`, because `res.redirect` writes the target into an HTML body. */
export function sendRedirect(res: Response, url: string): void {
  res.statusCode = 302
  res.setHeader('Location', url)
  res.end()
}

/** Adds a query parameter to a URL. The URL can have a query and a fragment. The value must not need encoding. */
export function withParameter(target: string, name: string, value: string): string {
  const [page = '', fragment] = target.split('#', 2)
  return `${page}${page.includes('?') ? '&' : '?'}${name}=${value}${fragment === undefined ? '' : `#${fragment}`}`
}

/**
 * Returns all values of a header, in order. Node joins or drops repeated headers, and a proxy before the app can have used another value.
 * So the function reads the raw headers.
 */
export function headerValues(req: Request, name: string): readonly string[] {
  const raw = req.rawHeaders ?? []
  const sent = raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name)
  if (sent.length > 0) return sent
  const joined = req.headers[name] // adapters of other servers set only `req.headers`
  return joined === undefined ? [] : [joined].flat()
}

/** Returns the value of a header that was sent exactly once; otherwise null. */
export function onlyValue(req: Request, name: string): string | null {
  const [value, ...others] = headerValues(req, name)
  return value === undefined || others.length > 0 ? null : value
}

/** The responses whose outcome is awaited. For other responses no outcome is stored, because an outcome can hold much memory. */
const awaited = new WeakMap<Response, { outcome?: unknown }>()

/** Makes `setResult` store the outcome of this response. Call this function before the route's handler runs. */
export function awaitOutcome(res: Response): void {
  awaited.set(res, {})
}

/**
 * Notes the result or the error of a route, as the method of `auth.service` would return or throw it. `auth.with(req, res)` then returns
 * this result or throws this error.
 */
export function setResult(res: Response, outcome: unknown): void {
  const slot = awaited.get(res)
  if (slot) slot.outcome = outcome
}

/** Returns the stored outcome; undefined if there is none. */
export function outcomeOf(res: Response): unknown {
  return awaited.get(res)?.outcome
}
