import type { Request, Response } from 'express'

/** No store, no frame, no guessed type, and no URL as a referrer to other sites (RFC 6749 section 5.1; RFC 9700 section 4.2.4). */
export function setSecurityHeaders(res: Response): void {
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('Pragma', 'no-cache')
  res.setHeader('Referrer-Policy', 'no-referrer')
  res.setHeader('X-Content-Type-Options', 'nosniff')
  res.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'")
}

/** The host's `json spaces`, `json replacer`, `json escape` and `etag` must not change it: an ETag allows conditional requests. */
export function sendJson(res: Response, status: number, body: unknown): void {
  sendJsonText(res, status, JSON.stringify(body))
}

export function sendJsonText(res: Response, status: number, text: string): void {
  res.statusCode = status
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.end(text)
}

interface PageHeaders {
  readonly styleNonce: string
  /** Allows a script with the same nonce. */
  readonly needsScript?: boolean
  readonly formTargets?: readonly string[]
  readonly referrerPolicy: string
}

/** Loads only its own style sheet. Browsers apply `form-action` also to a redirect, so `formTargets` lists the origins. */
export function sendHtml(
  res: Response,
  status: number,
  page: string,
  { styleNonce, needsScript = false, formTargets = [], referrerPolicy }: PageHeaders,
): void {
  res.statusCode = status
  res.setHeader('Referrer-Policy', referrerPolicy)
  res.setHeader('Content-Type', 'text/html; charset=utf-8')
  res.setHeader(
    'Content-Security-Policy',
    `default-src 'none'; style-src 'nonce-${styleNonce}'; ${needsScript ? `script-src 'nonce-${styleNonce}'; ` : ''}form-action ${["'self'", ...formTargets].join(' ')}; frame-ancestors 'none'; base-uri 'none'`,
  )
  res.end(page)
}

export function sendEmpty(res: Response): void {
  res.statusCode = 204
  res.end()
}

/** The browser loads the next page with GET (RFC 9110 section 15.4.4). */
export function sendSeeOther(res: Response, url: string): void {
  res.statusCode = 303
  res.setHeader('Location', url)
  res.end()
}

/** `res.redirect` would write the target into an HTML body. */
export function sendRedirect(res: Response, url: string): void {
  res.statusCode = 302
  res.setHeader('Location', url)
  res.end()
}

/** The URL can have a query and a fragment. The value must not need encoding. */
export function withParameter(target: string, name: string, value: string): string {
  const [page = '', fragment] = target.split('#', 2)
  return `${page}${page.includes('?') ? '&' : '?'}${name}=${value}${fragment === undefined ? '' : `#${fragment}`}`
}

/** In order, from the raw headers: Node joins or drops repeated headers, and a proxy can have used another value. */
export function headerValues(req: Request, name: string): readonly string[] {
  const raw = req.rawHeaders ?? []
  const sent = raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name)
  if (sent.length > 0) return sent
  const joined = req.headers[name] // adapters of other servers set only `req.headers`
  return joined === undefined ? [] : [joined].flat()
}

/** Null: not sent exactly once. */
export function onlyValue(req: Request, name: string): string | null {
  const [value, ...others] = headerValues(req, name)
  return value === undefined || others.length > 0 ? null : value
}

/** An outcome can hold much memory, so others are not stored. */
const awaited = new WeakMap<Response, { outcome?: unknown }>()

/** Call it before the route's handler runs. */
export function awaitOutcome(res: Response): void {
  awaited.set(res, {})
}

/** As the method of `auth.service` would return or throw it. `auth.with(req, res)` then does so. */
export function setResult(res: Response, outcome: unknown): void {
  const slot = awaited.get(res)
  if (slot) slot.outcome = outcome
}

export function outcomeOf(res: Response): unknown {
  return awaited.get(res)?.outcome
}
