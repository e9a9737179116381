import type { RequestHandler } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { MfaFactorTooNewError } from '../errors'
import { codeRefusals, factorCode, keptRefreshToken, unauthorized } from '../factor/factor-code'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { describeStep, done } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, step, withBody } from '../http/routes'
import { sendEmpty } from '../http/send'
import { passwordText } from '../http/validate'
import { clearEndedCookies } from '../session/ended-cookies'
import type { DeliveryLine } from '../session/per-delivery'
import { aliveSession, freshSession, requestSessionOf, sessionOf } from '../step-up/fresh-session'
import { refuseYoungFactor } from '../step-up/young-credential'
import { changePasswordWithMfa } from './change-password'

interface PasswordBody {
  code: string
  new_password: string
  /** Names the session of the request, where the access token does not. */
  refresh_token?: string
}

/** A password change by a code; it is there for whoever has a factor. */
export function passwordChangeRoute(ctx: AuthContext, guards: Guards, { base, before }: DeliveryLine): Route {
  return withBody({
    method: 'POST',
    path: `${base}/password-change/mfa`,
    describes: {
      summary: 'Change the password by a code of the second factor, and end every other session',
      answers: [done],
      refuses: [...unauthorized, ...codeRefusals],
    },
    before: [
      ...before,
      routeBudget(ctx, 'password_change'),
      guards.requireAuth(),
      sameSiteWhenByCookie(ctx),
      aliveSession(ctx),
      matureFactor(ctx),
      freshSession(ctx),
    ],
    body: Joi.object<PasswordBody>({ code: factorCode, new_password: passwordText().allow(''), refresh_token: keptRefreshToken }),
    handle: async (req, res, body) => {
      const locale = localeOf(req, ctx.settings.defaultLocale)
      await changePasswordWithMfa(ctx, {
        userId: getAuth(req).sub,
        code: body.code,
        newPassword: body.new_password,
        session: sessionOf(req),
        locale,
      })
      await clearEndedCookies(ctx, req, res)
      sendEmpty(res)
    },
  })
}

/** The code stands in for the password, so the factor has to be older than a day. Behind `aliveSession`. */
function matureFactor(ctx: AuthContext): RequestHandler {
  const check = step((req) => refuseYoungFactor(ctx, requestSessionOf(req).user))
  return describeStep(check, { refuses: [MfaFactorTooNewError] })
}
