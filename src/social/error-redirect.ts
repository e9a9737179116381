import type { ErrorRequestHandler, Request } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderUnavailableError, TooManyRequestsError } from '../core/errors'
import type { Answer } from '../http/description'
import { readRefusal } from '../http/error-envelope'
import { queryParameter } from '../http/query-parameter'
import { longestReturnTo } from '../http/return-to'
import { sendRedirect } from '../http/send'
import { signInLocation } from '../http/sign-in-page'
import { withParameter } from '../http/with-parameter'
import { type AppDestination, type Destination, isApp } from '../sessions/destination'
import { findAttempt } from './attempts'

/**
 * Returns a handler that answers every error with a redirect. The redirect contains the code of the error. The target is the app of this
 * callback's attempt, or else the host's error page. Only the log contains the details of the error. Undefined: the settings name no app
 * and no error page.
 */
export function redirectErrors(ctx: AuthContext): ErrorRequestHandler | undefined {
  const { oauthErrorRedirect, appRedirects } = ctx.settings
  if (oauthErrorRedirect === null && appRedirects.length === 0) return undefined
  return redirecting(ctx, (_error, req) => appOfCallback(ctx, req)?.redirectTo ?? oauthErrorRedirect)
}

/**
 * Returns a handler that redirects a browser navigation if it exceeds the rate limit of its route. A script gets the JSON error envelope.
 */
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

/** Returns where the person wanted to go: from the attempt of a callback, or from the query of a login that has no attempt yet. */
function returnToOf(ctx: AuthContext, req: Request): string | null {
  const destination = destinationOf(ctx, req)
  if (destination !== null && 'returnTo' in destination) return destination.returnTo
  return queryParameter(req, 'return_to', longestReturnTo)
}

/** Describes the additional responses of a route with `redirectThrottled`. */
export function throttledAnswers({ settings }: AuthContext): Answer[] {
  if (settings.oauthErrorRedirect === null) return []
  return [{ status: 302, description: 'If a browser navigation exceeds the rate limit: to `oauthErrorRedirect`, with `error`.' }]
}

/** Returns true if the browser says that the request is a navigation. Without the header `sec-fetch-mode`, a GET counts as a navigation. */
function isNavigation({ method, headers }: Request): boolean {
  return (headers['sec-fetch-mode'] ?? (method === 'GET' ? 'navigate' : undefined)) === 'navigate'
}
