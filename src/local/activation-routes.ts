import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { openFor, sendLogin } from '../device/send-login'
import { EmailLinkForbiddenError, InvalidTokenError, TokenExpiredError, TooManyRequestsError } from '../errors'
import { type EvidenceBody, evidenceOf, passwordField, passwordRefusals } from '../first-proof/evidence'
import { routeBudget } from '../guards/route-budget'
import type { Description } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { text } from '../http/validate'
import { loginAnswer } from '../session/delivery'
import { clearEndedCookies } from '../session/ended-cookies'
import type { DeliveryLine } from '../session/per-delivery'
import { activate } from './activate'

/**
 * Routes for the activation. A client sends the token in the path or in the body. The body is better, because access logs do not record it.
 */
export function activationRoutes(ctx: AuthContext, { base, delivery, before }: DeliveryLine): Route[] {
  const describes: Description = {
    summary: 'Activate an account with the mailed link, and log in',
    answers: [loginAnswer(ctx, delivery)],
    refuses: [InvalidTokenError, ...passwordRefusals(ctx), TokenExpiredError, EmailLinkForbiddenError, TooManyRequestsError],
  }
  const evidence = { ...passwordField(ctx), signup_token: text(512).optional() }
  const redeem = async (req: Request, res: Response, token: string, body: EvidenceBody) => {
    const options = { evidence: await evidenceOf(ctx, req, body), locale: localeOf(ctx, req) }
    const result = await activate(ctx, token, openFor(ctx, req), options)
    await clearEndedCookies(ctx, req, res)
    sendLogin(ctx, res, result, delivery)
  }
  const line = { method: 'POST', describes, loginShaped: true, before: [...before, routeBudget(ctx, 'activate')] } as const
  return [
    withBody({
      ...line,
      path: `${base}/activate/:token`,
      body: Joi.object<EvidenceBody>(evidence),
      handle: (req, res, body) => redeem(req, res, String(req.params['token']), body),
    }),
    withBody({
      ...line,
      path: `${base}/activate`,
      body: Joi.object<EvidenceBody & { token: string }>({ token: text(512), ...evidence }),
      handle: (req, res, { token, ...body }) => redeem(req, res, token, body),
    }),
  ]
}
