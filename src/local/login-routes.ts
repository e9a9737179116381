import Joi from 'joi'
import type { AuthContext } from '../context'
import { EmailLinkForbiddenError, InvalidCredentialsError, InvalidTokenError, LoginThrottledError } from '../errors'
import { routeBudget } from '../guards/route-budget'
import { emailAddress } from '../http/email-address'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { passwordText, text } from '../http/validate'
import { loginAnswer, sendLogin } from '../session/delivery'
import { openServerSession, openTokens } from '../session/open-session'
import type { DeliveryLine } from '../session/per-delivery'
import { originOf, sendSessionLogin, sessionLoginAnswer } from '../session/session-cookie'
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

const credentials = Joi.object<LoginBody>({ email: emailAddress, password: passwordText() })

/** Email and password, and the reset link that stands in for a forgotten one. */
export function loginRoutes(ctx: AuthContext, { base, delivery, before }: DeliveryLine): Route[] {
  return [
    withBody({
      method: 'POST',
      path: `${base}/login`,
      describes: {
        summary: 'Log in with email and password',
        answers: [loginAnswer(delivery)],
        refuses: [InvalidCredentialsError, LoginThrottledError],
      },
      loginShaped: true,
      before,
      body: credentials,
      handle: async (req, res, { email, password }) =>
        sendLogin(ctx, res, await logIn(ctx, { email, password, client: clientKey(req.ip) }, openTokens(originOf(ctx, req))), delivery),
    }),
    withBody({
      method: 'POST',
      path: `${base}/password-reset/confirm`,
      describes: {
        summary: 'Set a new password by the mailed link, and log in',
        answers: [loginAnswer(delivery)],
        refuses: [InvalidTokenError, EmailLinkForbiddenError],
      },
      loginShaped: true,
      before: [...before, routeBudget(ctx, 'password_reset_confirm')],
      body: Joi.object<ResetBody>({ token: text(512), new_password: passwordText().allow('') }),
      handle: async (req, res, { token, new_password: newPassword }) => {
        const locale = localeOf(req, ctx.settings.defaultLocale)
        sendLogin(ctx, res, await resetPassword(ctx, { token, newPassword, locale }, openTokens(originOf(ctx, req))), delivery)
      },
    }),
  ]
}

/** Email and password into a server-side session, where the store has them; the same login, and the same budgets. */
export function sessionLoginRoute(ctx: AuthContext): Route[] {
  if (!ctx.store.sessions) return []
  return [
    withBody({
      method: 'POST',
      path: '/session/login',
      describes: {
        summary: 'Log in with email and password, into a session cookie',
        answers: [sessionLoginAnswer],
        refuses: [InvalidCredentialsError, LoginThrottledError],
      },
      loginShaped: true,
      before: [sameSite(ctx.settings)],
      body: credentials,
      handle: async (req, res, { email, password }) => {
        const input = { email, password, client: clientKey(req.ip) }
        sendSessionLogin(ctx, res, await logIn(ctx, input, openServerSession(originOf(ctx, req))))
      },
    }),
  ]
}
