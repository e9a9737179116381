import Joi from 'joi'
import type { AuthContext } from '../context'
import { routeBudget } from '../guards/route-budget'
import { emailAddress } from '../http/email-address'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { passwordText, text } from '../http/validate'
import { sendLogin } from '../session/delivery'
import type { DeliveryLine } from '../session/per-delivery'
import { clientKey } from '../throttle/client-key'
import { logIn } from './log-in'
import { resetPassword } from './reset-password'

interface LoginBody {
  email: string
  password: string
}

interface ResetBody {
  token: string
  new_password: string
}

/** Email and password, and the reset link that stands in for a forgotten one. */
export function loginRoutes(ctx: AuthContext, { base, delivery, before }: DeliveryLine): Route[] {
  return [
    withBody({
      method: 'POST',
      path: `${base}/login`,
      loginShaped: true,
      before,
      body: Joi.object<LoginBody>({ email: emailAddress, password: passwordText() }),
      handle: async (req, res, { email, password }) =>
        sendLogin(ctx, res, await logIn(ctx, { email, password, client: clientKey(req.ip) }), delivery),
    }),
    withBody({
      method: 'POST',
      path: `${base}/password-reset/confirm`,
      loginShaped: true,
      before: [...before, routeBudget(ctx, 'password_reset_confirm')],
      body: Joi.object<ResetBody>({ token: text(512), new_password: passwordText().allow('') }),
      handle: async (req, res, { token, new_password: newPassword }) => {
        const locale = localeOf(req, ctx.settings.defaultLocale)
        sendLogin(ctx, res, await resetPassword(ctx, { token, newPassword, locale }), delivery)
      },
    }),
  ]
}
