import type { Request, Response } from 'express'
import Joi from 'joi'
import { clientOf } from '../client-key'
import type { AuthContext } from '../context'
import { openFor, sendLogin } from '../device/send-login'
import { EmailLoginInvalidError, TokenExpiredError, TooManyRequestsError, ValidationError } from '../errors'
import { type EvidenceBody, evidenceOf, passwordField, passwordRefusals } from '../first-proof/evidence'
import { bodyOnGrid } from '../guards/answer-grid'
import { routeBudget } from '../guards/route-budget'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { text } from '../http/validate'
import { newLoginAttempt } from '../session/announce-failed-login'
import { type Delivery, loginAnswer } from '../session/delivery'
import { clearEndedCookies } from '../session/ended-cookies'
import type { DeliveryLine } from '../session/per-delivery'
import { forgetRequest, readRequestToken, requestOfBrowser } from './asking-browser'
import { confirmEmailLogin, type EmailLoginProof } from './confirm-email-login'

interface ConfirmBody extends EvidenceBody {
  token?: string
  code?: string
  request_token?: string
}

export function confirmRoute(ctx: AuthContext, { base, delivery, before }: DeliveryLine): Route {
  return bodyOnGrid(ctx, {
    method: 'POST',
    path: `${base}/email-login/confirm`,
    describes: {
      summary: 'Log in with the mailed link or code',
      needsOneOf: ['token', 'code'],
      answers: [loginAnswer(ctx, delivery)],
      refuses: [EmailLoginInvalidError, ...passwordRefusals(ctx), TokenExpiredError, TooManyRequestsError],
      hostRefuses: ctx.settings.emailLoginSignup && (ctx.signup.onSignup ?? ctx.signup.admit) !== undefined,
    },
    loginShaped: true,
    before: [...before, routeBudget(ctx, 'email_login_confirm')],
    body: Joi.object<ConfirmBody>({
      token: text(512).optional(),
      // A string of any length and with any characters counts as a wrong code, not as a malformed request.
      code: Joi.string().allow('').optional(),
      request_token: text(4096).optional(),
      ...passwordField(ctx),
      signup_token: text(512).optional(),
      refresh_token: text(4096).optional(),
    }),
    handle: (ctx, req, res, body) => confirm(ctx, req, res, body, delivery),
  })
}

async function confirm(ctx: AuthContext, req: Request, res: Response, body: ConfirmBody, delivery: Delivery): Promise<void> {
  const browserRequestId = requestOfBrowser(ctx, req)
  const proof = proofOf(ctx, body, { browserRequestId, delivery })
  const result = await confirmEmailLogin(ctx, proof, openFor(ctx, req), {
    evidence: await evidenceOf(ctx, req, body),
    locale: localeOf(ctx, req),
    browserRequestId,
    attempt: newLoginAttempt(clientOf(req)),
  })
  await clearEndedCookies(ctx, req, res)
  if (browserRequestId !== null) forgetRequest(ctx, res)
  sendLogin(ctx, res, result, delivery)
}

/**
 * Returns the token or the code of the body. A code needs the id of its request. The id comes from the browser's cookie. Clients without
 * cookies send the id in the body.
 */
function proofOf(
  ctx: AuthContext,
  { token, code, request_token: requestToken }: ConfirmBody,
  { browserRequestId, delivery }: { browserRequestId: string | null; delivery: Delivery },
): EmailLoginProof {
  if (token !== undefined && code === undefined) return { token }
  if (code === undefined || token !== undefined)
    throw new ValidationError({ details: { errors: [{ path: 'token', rule: code === undefined ? 'object.missing' : 'object.xor' }] } })
  if (delivery !== 'bearer') return { code, requestId: browserRequestId }
  return { code, requestId: requestToken === undefined ? null : readRequestToken(ctx, requestToken) }
}
