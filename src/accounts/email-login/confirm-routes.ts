import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../../context'
import { clientOf } from '../../core/client-key'
import { EmailLoginInvalidError, TokenExpiredError, TooManyRequestsError, ValidationError } from '../../core/errors'
import { bodyWithFixedResponseTime } from '../../http/fixed-response-time'
import { localeOf } from '../../http/locale'
import type { Route } from '../../http/routes'
import { text } from '../../http/validate'
import { routeRateLimit } from '../../rate-limits/route-rate-limit'
import { newLoginAttempt } from '../../sessions/announce-failed-login'
import { type Delivery, loginAnswer } from '../../sessions/delivery'
import { loginClient, sendLogin } from '../../sessions/devices/send-login'
import { clearEndedCookies } from '../../sessions/ended-cookies'
import type { RouteSet } from '../../sessions/routes-by-delivery'
import { passwordField, passwordRefusals, type SignupOwnershipBody, signupOwnershipOf } from '../email-verification/signup-ownership'
import { forgetRequest, readRequestToken, requestOfBrowser } from './asking-browser'
import { confirmEmailLogin, type EmailLoginProof } from './confirm-email-login'

interface ConfirmBody extends SignupOwnershipBody {
  token?: string
  code?: string
  request_token?: string
}

export function confirmRoute(ctx: AuthContext, { base, delivery, before }: RouteSet): Route {
  return bodyWithFixedResponseTime(ctx, {
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
    before: [...before, routeRateLimit(ctx, 'email_login_confirm')],
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
  const result = await confirmEmailLogin(ctx, proof, loginClient(ctx, req), {
    evidence: await signupOwnershipOf(ctx, req, body),
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
