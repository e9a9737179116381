import type { Request, Response } from 'express'
import { localeOf } from '../locale'
import type { PageContext } from './reader'
import { sendPage } from './send-page'

export interface ChallengePage {
  mfaToken: string
  target: string
  isWrong?: boolean
  /** False: the login is an app's, which has no cookies. Default true. */
  hasCookies?: boolean
}

/** Works without scripts: the form finishes the login and redirects to the target. */
export function sendChallengePage(
  ctx: PageContext,
  req: Request,
  res: Response,
  { mfaToken, target, isWrong = false, hasCookies = true }: ChallengePage,
): void {
  const trustDays = hasCookies ? ctx.settings.trustedDeviceDays : 0
  sendPage(ctx, req, res, isWrong ? 400 : 200, 'second_factor', {
    problem: isWrong ? ctx.texts.say(localeOf(ctx, req), 'mfa.wrong') : null,
    challenge: { action: challengeFormPath(ctx), mfaToken, ...(trustDays > 0 && { trustDays }) },
    formTargets: originsOf([target, ctx.settings.oauthErrorRedirect]),
  })
}

/** With `tokenDelivery: 'both'`, routes below `/cookie` set the login cookies. With `'bearer'`, the form redirects to an app. */
function challengeFormPath({ settings, prefix }: PageContext): string {
  return `${prefix}${settings.tokenDelivery === 'both' ? '/cookie' : ''}/mfa/verify`
}

function originsOf(targets: readonly (string | null)[]): string[] {
  return [...new Set(targets.flatMap((target) => (target !== null && URL.canParse(target) ? [sourceOf(new URL(target))] : [])))]
}

/** For an app with its own scheme, the source is the scheme (CSP 3 section 2.3.1). */
function sourceOf({ origin, protocol }: URL): string {
  return origin === 'null' ? protocol : origin
}
