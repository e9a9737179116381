import Joi from 'joi'
import type { AuthContext } from '../context'
import { EmailLinkForbiddenError, InvalidTokenError } from '../errors'
import { routeBudget } from '../guards/route-budget'
import type { Description } from '../http/description'
import { type Route, withBody } from '../http/routes'
import { text } from '../http/validate'
import { loginAnswer, sendLogin } from '../session/delivery'
import { openTokens } from '../session/open-session'
import type { DeliveryLine } from '../session/per-delivery'
import { originOf } from '../session/session-cookie'
import { activate } from './activate'

/** The token in the path, as specified, or in the body, where no log of the path keeps it. */
export function activationRoutes(ctx: AuthContext, { base, delivery, before }: DeliveryLine): Route[] {
  const describes: Description = {
    summary: 'Activate an account by the mailed link, and log in',
    answers: [loginAnswer(delivery)],
    refuses: [InvalidTokenError, EmailLinkForbiddenError],
  }
  const line = { method: 'POST', describes, loginShaped: true, before: [...before, routeBudget(ctx, 'activate')] } as const
  return [
    withBody({
      ...line,
      path: `${base}/activate/:token`,
      body: Joi.object({}),
      handle: async (req, res) =>
        sendLogin(ctx, res, await activate(ctx, String(req.params['token']), openTokens(originOf(ctx, req))), delivery),
    }),
    withBody({
      ...line,
      path: `${base}/activate`,
      body: Joi.object<{ token: string }>({ token: text(512) }),
      handle: async (req, res, { token }) => sendLogin(ctx, res, await activate(ctx, token, openTokens(originOf(ctx, req))), delivery),
    }),
  ]
}
