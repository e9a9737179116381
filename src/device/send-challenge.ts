import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { sendRedirect } from '../http/send'
import { type ChallengePage, sendChallengePage } from '../pages/challenge-page'
import { readerOf } from '../pages/reader'
import { destinationOfChallenge } from '../session/challenge'
import { keepChallenge } from '../session/challenge-cookie'
import { isApp } from '../session/destination'

/**
 * Asks a browser for the second factor. Where the pages are on, that is the page `/mfa`, which goes on to the target. The login of an app sets
 * no cookie, so it is finished by the form of a page of its own.
 */
export function sendChallenge(ctx: AuthContext, req: Request, res: Response, page: ChallengePage, redirect = sendRedirect): void {
  const { mfaToken, target } = page
  const destination = destinationOfChallenge(ctx, mfaToken)
  if (!ctx.settings.pagesEnabled || isApp(destination)) return void sendChallengePage(ctx, req, res, page)
  // One of the two: the token has the destination, too, and three of a long one are more than a cookie holds.
  keepChallenge(ctx, res, {
    mfaToken,
    ...(destination === null ? { returnTo: null, landing: target } : { returnTo: destination.returnTo }),
  })
  redirect(res, readerOf(ctx, req).href('/mfa'))
}
