import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { EmailLinkForbiddenError, InvalidTokenError, TokenExpiredError, TooManyRequestsError } from '../core/errors'
import type { Description } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { text } from '../http/validate'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { loginAnswer } from '../sessions/delivery'
import { loginClient, sendLogin } from '../sessions/devices/send-login'
import { clearEndedCookies } from '../sessions/ended-cookies'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { activate } from './activate'
import { passwordField, passwordRefusals, type SignupOwnershipBody, signupOwnershipOf } from './email-verification/signup-ownership'

/**
 * Routes for the activation. A client sends the token in the path or in the body. The body is better, because access logs do not record it.
 */
export function activationRoutes(ctx: AuthContext, { base, delivery, before }: RouteSet): Route[] {
  const describes: Description = {
    summary: 'Activate an account with the mailed link, and log in',
    answers: [loginAnswer(ctx, delivery)],
    refuses: [InvalidTokenError, ...passwordRefusals(ctx), TokenExpiredError, EmailLinkForbiddenError, TooManyRequestsError],
  }
  const evidence = { ...passwordField(ctx), signup_token: text(512).optional() }
  const redeem = async (req: Request, res: Response, token: string, body: SignupOwnershipBody) => {
    const options = { evidence: await signupOwnershipOf(ctx, req, body), locale: localeOf(ctx, req) }
    const result = await activate(ctx, token, loginClient(ctx, req), options)
    await clearEndedCookies(ctx, req, res)
    sendLogin(ctx, res, result, delivery)
  }
  const line = { method: 'POST', describes, loginShaped: true, before: [...before, routeRateLimit(ctx, 'activate')] } as const
  return [
    withBody({
      ...line,
      path: `${base}/activate/:token`,
      body: Joi.object<SignupOwnershipBody>(evidence),
      handle: (req, res, body) => redeem(req, res, String(req.params['token']), body),
    }),
    withBody({
      ...line,
      path: `${base}/activate`,
      body: Joi.object<SignupOwnershipBody & { token: string }>({ token: text(512), ...evidence }),
      handle: (req, res, { token, ...body }) => redeem(req, res, token, body),
    }),
  ]
}
