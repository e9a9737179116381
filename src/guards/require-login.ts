import type { Request, Response } from 'express'
import { ConfigurationError, UnauthorizedError } from '../core/errors'
import { guardedSignInPage } from '../core/setup-warnings'
import { continuePath, isReturnTo, isSignInPage, signInLocation, wantsPage } from '../http/return-to'
import { sendRedirect, setSecurityHeaders } from '../http/send'
import type { GuardContext } from './refusing'

/**
 * To the sign-in page, which redirects back; with access cookies to `/continue`, which needs no login while the refresh cookie is valid.
 * Returns false if the guard should send the JSON envelope.
 * @throws ConfigurationError with `tokenDelivery: 'bearer'`, without a sign-in page, and if the needed prefix of the router is missing
 */
export function redirectToLogin(ctx: GuardContext): (error: unknown, req: Request, res: Response) => boolean {
  const { settings, notices } = ctx
  const { page, passage } = wayOf(ctx)
  return (error, req, res) => {
    if (!(error instanceof UnauthorizedError) || !isPageRequest(req)) return false
    if (isSignInPage(settings, page, req)) {
      notices.tell(guardedSignInPage(page)) // a redirect would lead to this page again, forever
      return false
    }
    const asked = isReturnTo(settings, req.originalUrl) ? req.originalUrl : null
    setSecurityHeaders(res)
    sendRedirect(res, asked === null || passage === null ? signInLocation(settings, page, asked) : passage + encodeURIComponent(asked))
    return true
  }
}

interface Way {
  readonly page: string
  /** `/continue` up to the value of `return_to`. Null: the guard redirects to the sign-in page. */
  readonly passage: string | null
}

function wayOf({ settings, prefix }: GuardContext): Way {
  if (settings.tokenDelivery === 'bearer')
    throw new ConfigurationError(
      "requireLogin() is for browsers with cookies: set tokenDelivery (AUTH_TOKEN_DELIVERY) to 'cookie', 'both' or 'session', or use requireAuth().",
    )
  if (settings.loginUrl === null)
    throw new ConfigurationError('requireLogin() needs a page where people sign in: set loginUrl (AUTH_LOGIN_URL) to its path or URL.')
  const path = continuePath(settings)
  if (path !== null && prefix === undefined)
    throw new ConfigurationError(
      "requireLogin() needs to know where the router is: pass its `prefix`, for example '/auth', to createGuards().",
    )
  return { page: settings.loginUrl, passage: path === null ? null : `${prefix}${path}?return_to=` }
}

function isPageRequest(req: Request): boolean {
  return (req.method === 'GET' || req.method === 'HEAD') && wantsPage(req)
}
