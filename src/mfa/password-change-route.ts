import Joi from 'joi'
import type { AuthContext } from '../context'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { done } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sendEmpty } from '../http/send'
import { passwordText } from '../http/validate'
import { shownSession } from '../session/delivery'
import type { DeliveryLine } from '../session/per-delivery'
import { changePasswordWithMfa } from './change-password'
import { codeRefusals, factorCode, keptRefreshToken, unauthorized } from './factor-code'

interface PasswordBody {
  code: string
  new_password: string
  /** Names the session that goes on. */
  refresh_token?: string
}

/** A password change by a code; it is there for whoever has a factor (specification, Other errors). */
export function passwordChangeRoute(ctx: AuthContext, guards: Guards, { base, delivery, before }: DeliveryLine): Route {
  return withBody({
    method: 'POST',
    path: `${base}/password-change/mfa`,
    describes: {
      summary: 'Change the password by a code of the second factor, and end every other session',
      answers: [done],
      refuses: [...unauthorized, ...codeRefusals],
    },
    before: [...before, routeBudget(ctx, 'password_change'), guards.requireAuth(), sameSiteWhenByCookie(ctx)],
    body: Joi.object<PasswordBody>({ code: factorCode, new_password: passwordText().allow(''), refresh_token: keptRefreshToken }),
    handle: async (req, res, body) => {
      const keep = shownSession(ctx, req, body, delivery)
      const locale = localeOf(req, ctx.settings.defaultLocale)
      await changePasswordWithMfa(ctx, { userId: getAuth(req).sub, code: body.code, newPassword: body.new_password, keep, locale })
      sendEmpty(res)
    },
  })
}
