import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { html } from '../http/html/html'
import { readerOf } from '../http/html/reader'
import { queryParameter } from '../http/query-parameter'
import { sendRedirect } from '../http/send'
import { type Destination, isApp } from '../sessions/destination'
import { findAttempt } from './attempts'

const again = 'again'

/**
 * Sends the browser on to a target after a callback. With `cookieSamesite: 'strict'`, a redirect would still count as a navigation of the
 * provider's site, and the browser would send no cookie. So the response is a page that goes on by itself, from this site. An app that is
 * the destination needs no cookie.
 *
 * @param target a setting, or a part of the attempt that its MAC protects; never a text of the request
 */
export function goOn(ctx: AuthContext, req: Request, res: Response, target: string, destination: Destination | null): void {
  if (needsPage(ctx) && !isApp(destination)) sendPage(ctx, req, res, target)
  else sendRedirect(res, target)
}

/**
 * Loads the callback of a signed-in person a second time, from a page of ours. Only then does a browser send cookies with SameSite=Strict,
 * which name the session. Does so only for an attempt of this browser. The address is a query without an origin and a path, so the page
 * cannot lead anywhere else.
 *
 * @returns true if the response was sent
 */
export function loadedAgain(ctx: AuthContext, req: Request, res: Response, provider: string): boolean {
  if (!needsPage(ctx) || queryParameter(req, again, 1) !== null) return false
  const attempt = findAttempt(ctx, req, provider)
  if (!attempt || attempt.purpose === 'login') return false
  const query = req.originalUrl.slice(req.originalUrl.indexOf('?') + 1)
  sendPage(ctx, req, res, `?${query}&${again}=1`)
  return true
}

function needsPage({ settings: { cookieSamesite, tokenDelivery } }: AuthContext): boolean {
  return cookieSamesite === 'strict' && tokenDelivery !== 'bearer'
}

function sendPage(ctx: AuthContext, req: Request, res: Response, target: string): void {
  const reader = readerOf(ctx, req)
  const label = reader.text('go_on.link')
  res.statusCode = 200
  res.setHeader('Content-Type', 'text/html; charset=utf-8')
  res.end(
    html`<!doctype html>
<html lang="${reader.lang}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0;url=${target}">
<title>${label}</title>
<main><p><a href="${target}">${label}</a></p></main>
</html>
`.markup,
  )
}
