import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { sendChallenge } from '../device/send-challenge'
import { sendRedirect } from '../http/send'
import { wantsPage } from '../http/wants-page'
import { withParameter } from '../http/with-parameter'
import { codeOfChallenge, type IssuedCode } from '../oauth-code/issue-code'
import type { AppDestination } from '../session/destination'
import type { LoginChallenge } from '../session/finish-login'

/**
 * Ends a login that an app began. The browser shows the page for the second factor, or opens the app with the login's code. The
 * response sets no session cookie.
 */
export async function sendToApp(
  ctx: AuthContext,
  req: Request,
  res: Response,
  app: AppDestination,
  result: IssuedCode | LoginChallenge,
): Promise<void> {
  const target = app.redirectTo
  if (result.kind === 'challenge' && wantsPage(req)) return sendChallenge(ctx, req, res, { ...result, target })
  const code = result.kind === 'challenge' ? await codeOfChallenge(ctx, app, result.mfaToken) : result.code
  sendRedirect(res, withParameter(target, 'code', code))
}
