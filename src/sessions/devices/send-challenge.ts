import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { type ChallengePage, sendChallengePage } from '../../http/html/challenge-page'
import { readerOf } from '../../http/html/reader'
import { sendRedirect } from '../../http/send'
import { destinationOfChallenge } from '../challenge'
import { keepChallenge } from '../cookies'
import { isApp } from '../destination'

/**
 * Asks the browser for the second factor. If our pages are on, the function redirects to `/mfa`, and that page continues to the target. A
 * login of an app sets no cookie that could store the token, so the response is a page whose form contains the token.
 */
export function sendChallenge(ctx: AuthContext, req: Request, res: Response, page: ChallengePage, redirect = sendRedirect): void {
  const { mfaToken, target } = page
  const destination = destinationOfChallenge(ctx, mfaToken)
  if (!ctx.settings.pagesEnabled || isApp(destination)) return void sendChallengePage(ctx, req, res, page)
  // The token already contains the destination. The cookie stores the token and only one of destination and target, because a long
  // destination stored three times would be too large for a cookie.
  keepChallenge(ctx, res, {
    mfaToken,
    ...(destination === null ? { returnTo: null, landing: target } : { returnTo: destination.returnTo }),
  })
  redirect(res, readerOf(ctx, req).href('/mfa'))
}
