import Joi from 'joi'
import type { AuthContext } from '../context'
import { openFor, sendLogin } from '../device/send-login'
import { OAuthProviderNotConfiguredError } from '../errors'
import { evidenceOf } from '../first-proof/evidence'
import { routeBudget } from '../guards/route-budget'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { newLoginAttempt } from '../session/announce-failed-login'
import { loginAnswer } from '../session/delivery'
import { clearEndedCookies } from '../session/ended-cookies'
import { clientKey } from '../throttle/client-key'
import { accountRefusals, tokenRefusals } from './refusals'
import { accessTokenPattern, logInWithToken } from './token-in-hand'

export const accessTokenText = Joi.string().pattern(accessTokenPattern)

/** Delivered as the callback is: under `both` in cookies and in the body, without a twin below `/cookie`. */
export function tokenRoutes(ctx: AuthContext): Route[] {
  const { tokenDelivery } = ctx.settings
  const setsCookies = tokenDelivery !== 'bearer'
  return [
    withBody({
      method: 'POST',
      path: '/oauth/:provider/token',
      describes: {
        summary: 'Log in with an access token that an app already has',
        answers: [loginAnswer(tokenDelivery)],
        refuses: [...accountRefusals, ...tokenRefusals, OAuthProviderNotConfiguredError],
      },
      loginShaped: true,
      before: [...(setsCookies ? [sameSite(ctx)] : []), routeBudget(ctx, 'oauth_token')],
      body: Joi.object<{ access_token: string }>({ access_token: accessTokenText }),
      handle: async (req, res, { access_token: accessToken }) => {
        const locale = localeOf(req, ctx.settings.defaultLocale)
        const result = await logInWithToken(ctx, { provider: String(req.params['provider']), accessToken }, openFor(ctx, req), {
          locale,
          evidence: () => evidenceOf(ctx, req),
          attempt: newLoginAttempt(clientKey(req.ip)),
        })
        await clearEndedCookies(ctx, req, res)
        sendLogin(ctx, res, result, tokenDelivery)
      },
    }),
  ]
}
