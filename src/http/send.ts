import type { Response } from 'express'

/** No answer of ours is kept, framed, sniffed, or told to another site (RFC 6749 section 5.1; RFC 9700 section 4.2.4). */
export function setSecurityHeaders(res: Response): void {
  res.setHeader('Cache-Control', 'no-store')
  res.setHeader('Pragma', 'no-cache')
  res.setHeader('Referrer-Policy', 'no-referrer')
  res.setHeader('X-Content-Type-Options', 'nosniff')
  res.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'")
}

/**
 * Written without `res.json`: the host's `json spaces`, `json replacer`, `etag` and `json escape` settings are for its
 * own answers, and an ETag would let a conditional request be answered from a cache.
 */
export function sendJson(res: Response, status: number, body: unknown): void {
  sendJsonText(res, status, JSON.stringify(body))
}

/** What is JSON already. */
export function sendJsonText(res: Response, status: number, text: string): void {
  res.statusCode = status
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.end(text)
}

/**
 * A page of ours: its one style sheet is its own, and its form posts to us. Browsers hold a redirect after the form to the
 * same rule: `formTargets` are the origins it may lead to.
 */
export function sendHtml(
  res: Response,
  status: number,
  page: string,
  { styleNonce, formTargets = [] }: { styleNonce: string; formTargets?: readonly string[] },
): void {
  res.statusCode = status
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

/** After a form: the browser gets the next page with GET (RFC 9110 section 15.4.4). */
export function sendSeeOther(res: Response, url: string): void {
  res.statusCode = 303
  res.setHeader('Location', url)
  res.end()
}

/** Without `res.redirect`, which writes the target into an HTML body. */
export function sendRedirect(res: Response, url: string): void {
  res.statusCode = 302
  res.setHeader('Location', url)
  res.end()
}
