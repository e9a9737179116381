import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { wrongCode } from './page-texts'
import { sendPage } from './send-page'

/** Whether a challenge is answered by a page: a person is on the way to the success redirect, and no script is there to read JSON. */
export function wantsChallengePage(ctx: AuthContext, req: Request): boolean {
  return ctx.settings.oauthSuccessRedirect !== null && /\btext\/html\b/i.test(req.headers.accept ?? '')
}

/** Asks for the code, without script; its form finishes the login and follows the success redirect. */
export function sendChallengePage(ctx: AuthContext, req: Request, res: Response, mfaToken: string, { isWrong = false } = {}): void {
  sendPage(ctx, req, res, isWrong ? 400 : 200, 'second_factor', {
    problem: (locale) => (isWrong ? wrongCode[locale] : null),
    challenge: { action: challengeFormPath(ctx), mfaToken },
    formTargets: redirectOrigins(ctx),
  })
}

/** The line that answers in cookies. */
function challengeFormPath({ settings, prefix }: AuthContext): string {
  return `${prefix}${settings.tokenDelivery === 'both' ? '/cookie' : ''}/mfa/verify`
}

function redirectOrigins({ settings }: AuthContext): string[] {
  const targets = [settings.oauthSuccessRedirect, settings.oauthErrorRedirect].filter((target) => target !== null)
  return [...new Set(targets.filter((target) => URL.canParse(target)).map((target) => new URL(target).origin))]
}
