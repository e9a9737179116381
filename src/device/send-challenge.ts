import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { sendRedirect } from '../http/send'
import { type ChallengePage, sendChallengePage } from '../pages/challenge-page'
import { readerOf } from '../pages/reader'
import { destinationOfChallenge } from '../session/challenge'
import { keepChallenge } from '../session/challenge-cookie'
import { isApp } from '../session/destination'

/**
 * Asks the browser for the second factor. With our pages it redirects to `/mfa`, which continues to the target. The login of an app sets no
 * cookie, so it gets a page with a form of its own.
 */
export function sendChallenge(ctx: AuthContext, req: Request, res: Response, page: ChallengePage, redirect = sendRedirect): void {
  const { mfaToken, target } = page
  const destination = destinationOfChallenge(ctx, mfaToken)
  if (!ctx.settings.pagesEnabled || isApp(destination)) return void sendChallengePage(ctx, req, res, page)
  // Only one of the two, because the token contains the destination too, and a long one three times exceeds the size of a cookie.
  keepChallenge(ctx, res, {
    mfaToken,
    ...(destination === null ? { returnTo: null, landing: target } : { returnTo: destination.returnTo }),
  })
  redirect(res, readerOf(ctx, req).href('/mfa'))
}
