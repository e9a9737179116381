import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { type ChallengePage, sendChallengePage } from '../../http/html/challenge-page'
import { readerOf } from '../../http/html/reader'
import { sendRedirect } from '../../http/send'
import { destinationOfChallenge } from '../challenge'
import { keepChallenge } from '../cookies'
import { isApp } from '../destination'

/** Redirects to `/mfa` if our pages are on. An app's login sets no cookie for the token, so its page has the token in a form. */
export function sendChallenge(ctx: AuthContext, req: Request, res: Response, page: ChallengePage, redirect = sendRedirect): void {
  const { mfaToken, target } = page
  const destination = destinationOfChallenge(ctx, mfaToken)
  const hasCookies = !isApp(destination)
  if (!ctx.settings.pagesEnabled || !hasCookies) return void sendChallengePage(ctx, req, res, { ...page, hasCookies })
  // The token already contains the destination: a long one, stored three times, would be too large for a cookie.
  keepChallenge(ctx, res, {
    mfaToken,
    ...(destination === null ? { returnTo: null, landing: target } : { returnTo: destination.returnTo }),
  })
  redirect(res, readerOf(ctx, req).href('/mfa'))
}
