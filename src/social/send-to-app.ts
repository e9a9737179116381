import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { wantsPage } from '../http/return-to'
import { sendRedirect, withParameter } from '../http/send'
import type { AppDestination } from '../sessions/destination'
import { sendChallenge } from '../sessions/devices/send-challenge'
import type { AppCode, LoginChallenge } from '../sessions/login'
import { codeOfChallenge } from './app-redirect/issue-code'

/** Shows the page for the second factor, or opens the app with its code. Sets no session cookie. */
export async function sendToApp(
  ctx: AuthContext,
  req: Request,
  res: Response,
  app: AppDestination,
  result: AppCode | LoginChallenge,
): Promise<void> {
  const target = app.redirectTo
  if (result.kind === 'challenge' && wantsPage(req)) return sendChallenge(ctx, req, res, { ...result, target })
  const code = result.kind === 'challenge' ? await codeOfChallenge(ctx, app, result.mfaToken) : result.code
  sendRedirect(res, withParameter(target, 'code', code))
}
