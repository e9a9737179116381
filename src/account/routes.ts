import Joi from 'joi'
import type { AuthContext } from '../context'
import { AccountInactiveError, MfaRequiredError, TooManyRequestsError, UnauthorizedError } from '../errors'
import { getAuth, getUser } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { userBody, userSchema } from '../guards/public-user'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { type Description, done } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sendEmpty, sendJson } from '../http/send'
import { passwordText, text } from '../http/validate'
import { shownSession } from '../session/delivery'
import { type DeliveryLine, perDelivery } from '../session/per-delivery'
import { changePassword } from './change-password'
import { emailRoutes } from './email-routes'

/** The signed-in person's own account. */
export function accountRoutes(ctx: AuthContext, guards: Guards): Route[] {
  return [
    {
      method: 'GET',
      path: '/me',
      describes: describesMe,
      before: [guards.requireUser()],
      handle: (req, res) => sendJson(res, 200, userBody(getUser(req))),
    },
    ...perDelivery(ctx, (line) => [passwordChange(ctx, guards, line)]),
    ...emailRoutes(ctx, guards),
  ]
}

const describesMe: Description = {
  summary: 'The signed-in person',
  answers: [{ status: 200, description: 'As the database has it now.', schema: userSchema }],
}

interface PasswordChangeBody {
  current_password: string
  new_password: string
  /** Names the session that goes on. */
  refresh_token?: string
}

function passwordChange(ctx: AuthContext, guards: Guards, { base, delivery, before }: DeliveryLine): Route {
  return withBody({
    method: 'POST',
    path: `${base}/password-change`,
    describes: {
      summary: 'Change the password, and end every other session',
      answers: [done],
      refuses: [UnauthorizedError, AccountInactiveError, MfaRequiredError, TooManyRequestsError],
    },
    before: [...before, routeBudget(ctx, 'password_change'), guards.requireAuth(), sameSiteWhenByCookie(ctx)],
    body: Joi.object<PasswordChangeBody>({
      current_password: passwordText(),
      new_password: passwordText().allow(''),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, body) => {
      const keep = shownSession(ctx, req, body, delivery)
      const { sub: userId, amr } = getAuth(req)
      const { current_password: currentPassword, new_password: newPassword } = body
      const locale = localeOf(req, ctx.settings.defaultLocale)
      await changePassword(ctx, { userId, currentPassword, newPassword, amr, keep, locale })
      sendEmpty(res)
    },
  })
}
