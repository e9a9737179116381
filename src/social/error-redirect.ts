import type { ErrorRequestHandler, Request, Response } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderUnavailableError, TooManyRequestsError } from '../core/errors'
import type { Answer } from '../http/description'
import { readRefusal } from '../http/error-envelope'
import { html } from '../http/html/document'
import { readerOf } from '../http/html/reader'
import { queryParameter } from '../http/locale'
import { longestReturnTo, signInLocation } from '../http/return-to'
import { sendRedirect, withParameter } from '../http/send'
import { type AppDestination, type Destination, isApp } from '../sessions/destination'
import { findAttempt } from './attempts'

/** To the app of this callback's attempt, or else to the host's error page, with the error's code. Only the log has the details. */
export function redirectErrors(ctx: AuthContext): ErrorRequestHandler | undefined {
  const { oauthErrorRedirect, appRedirects } = ctx.settings
  if (oauthErrorRedirect === null && appRedirects.length === 0) return undefined
  return redirecting(ctx, (_error, req) => appOfCallback(ctx, req)?.redirectTo ?? oauthErrorRedirect)
}

/** For browser navigations above the rate limit. A script gets the JSON error envelope. */
export function redirectThrottled(ctx: AuthContext): ErrorRequestHandler | undefined {
  const { oauthErrorRedirect } = ctx.settings
  if (oauthErrorRedirect === null) return undefined
  return redirecting(ctx, (error, req) => (error instanceof TooManyRequestsError && isNavigation(req) ? oauthErrorRedirect : null))
}

function redirecting(ctx: AuthContext, targetOf: (error: unknown, req: Request) => string | null): ErrorRequestHandler {
  return (error, req, res, next) => {
    const target = res.headersSent ? null : targetOf(error, req)
    if (target === null) return next(error)
    // Our own page goes on to where the person wanted to go. The host's page gets the code alone.
    const isSignIn = target === ctx.settings.loginUrl
    const { code, details } = readRefusal(ctx.logger, req, error)
    const isFailure = isSignIn && ['server_error', 'temporarily_unavailable'].includes(String(details['error']))
    const failed = withParameter(target, 'error', isFailure ? OAuthProviderUnavailableError.code : code)
    sendRedirect(res, isSignIn ? signInLocation(ctx.settings, failed, returnToOf(ctx, req)) : failed)
  }
}

function appOfCallback(ctx: AuthContext, req: Request): AppDestination | null {
  const destination = destinationOf(ctx, req)
  return isApp(destination) ? destination : null
}

function destinationOf(ctx: AuthContext, req: Request): Destination | null {
  return findAttempt(ctx, req, String(req.params['provider']))?.destination ?? null
}

/** From the attempt of a callback, or from the query of a login that has no attempt yet. */
function returnToOf(ctx: AuthContext, req: Request): string | null {
  const destination = destinationOf(ctx, req)
  if (destination !== null && 'returnTo' in destination) return destination.returnTo
  return queryParameter(req, 'return_to', longestReturnTo)
}

export function throttledAnswers({ settings }: AuthContext): Answer[] {
  if (settings.oauthErrorRedirect === null) return []
  return [{ status: 302, description: 'If a browser navigation exceeds the rate limit: to `oauthErrorRedirect`, with `error`.' }]
}

/** Without the header `sec-fetch-mode`, a GET counts as a navigation. */
function isNavigation({ method, headers }: Request): boolean {
  return (headers['sec-fetch-mode'] ?? (method === 'GET' ? 'navigate' : undefined)) === 'navigate'
}

const again = 'again'

/**
 * With `cookieSamesite: 'strict'`, a redirect still counts as the provider's navigation, and the browser sends no cookie. So a page goes on
 * by itself, from this site. An app needs no cookie.
 * @param target a setting, or a part of the attempt that its MAC protects; never a text of the request
 */
export function goOn(ctx: AuthContext, req: Request, res: Response, target: string, destination: Destination | null): void {
  if (needsPage(ctx) && !isApp(destination)) sendPage(ctx, req, res, target)
  else sendRedirect(res, target)
}

/**
 * From a page of ours, a browser sends the SameSite=Strict cookies that name the session. Only for an attempt of this browser. The address
 * is a query alone, so the page cannot lead anywhere else.
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
