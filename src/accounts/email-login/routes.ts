import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import Joi from 'joi'
import { type CaptchaField, captchaField, captchaRefusals } from '../../captcha/require-captcha'
import type { AuthContext } from '../../context'
import { clientOf } from '../../core/client-key'
import { EmailLoginInvalidError, TokenExpiredError, TooManyRequestsError, ValidationError } from '../../core/errors'
import { type Answer, shape, string, stringOrNull } from '../../http/description'
import { readTypedAddress, typedAddress } from '../../http/email-address'
import { bodyWithFixedResponseTime } from '../../http/fixed-response-time'
import { text } from '../../http/input'
import { localeOf } from '../../http/locale'
import { readReturnTo } from '../../http/return-to'
import { type Route, withBody } from '../../http/routes'
import { sendJson, setResult } from '../../http/send'
import { forgetUsedInvitation, type InvitationField, invitationField, invitationOf, invitationRefusals } from '../../invitations/carried'
import { routeRateLimit } from '../../rate-limits/rate-limiter'
import { stateRefusals } from '../../sessions/account-state'
import { clearEndedCookies } from '../../sessions/current-auth'
import { type Delivery, loginAnswer, loginClient, sendLogin } from '../../sessions/delivery'
import { type PresentedDevice, presentedDevice, previousToken } from '../../sessions/devices/device-cookie'
import { countLinkRequest, newLoginAttempt } from '../../sessions/devices/login-limits'
import { type RouteSet, routesByDelivery } from '../../sessions/routes-by-delivery'
import { lookForNobody } from '../email-links/email-link'
import { withSignupMail } from '../email-links/signup-mails'
import { passwordField, passwordRefusals, type SignupOwnershipBody, signupOwnershipOf } from '../email-verification/signup-ownership'
import { hostGuard } from '../host-guard'
import { confirmEmailLogin, type EmailLoginProof } from './confirm-email-login'
import { emailLoginPage } from './link-page'
import {
  forgetRequest,
  readRequestToken,
  rememberRequest,
  requestEmailLogin,
  requestOfBrowser,
  signRequestToken,
} from './request-email-login'

export function emailLoginRoutes(ctx: AuthContext): Route[] {
  const { emailLogin, backendLinks, tokenDelivery } = ctx.settings
  if (emailLogin === 'off') return []
  const hasPage = emailLogin !== 'code' && backendLinks && tokenDelivery !== 'bearer'
  return [
    ...routesByDelivery(ctx, (line) => [requestRoute(ctx, line), confirmRoute(ctx, line)]),
    // After `/email-login/request` and `/email-login/confirm`, because `:token` would match those paths.
    ...(hasPage ? emailLoginPage(ctx) : []),
  ]
}

interface RequestBody extends CaptchaField, InvitationField {
  email: string
  return_to?: string
  previous_token?: string
}

const requested: Answer = {
  status: 202,
  description:
    'The response is equal for every address. Clients without cookies send `request_token` together with the code. Only in development, the response contains the link and the code.',
  schema: shape('RequestedEmailLogin', { message: string, request_token: string, login_url: stringOrNull, code: stringOrNull }),
}

const name = 'email_login_request'

function requestRoute(ctx: AuthContext, { base, before }: RouteSet): Route {
  return withBody({
    method: 'POST',
    path: `${base}/email-login/request`,
    describes: { summary: 'Request a mail to log in', answers: [requested], refuses: [TooManyRequestsError, ...captchaRefusals(ctx)] },
    before: [...before, ...hostGuard(ctx, 'email_login', name)],
    body: Joi.object<RequestBody>({
      email: typedAddress,
      return_to: text(2048).optional(),
      ...previousToken,
      ...captchaField(ctx),
      ...invitationField(ctx),
    }),
    handle: (req, res, body) => answer(ctx, req, res, body),
  })
}

/** Responds before the account is looked up, so that neither the time nor the cookie reveals an account. Not with `showsLinks`. */
async function answer(ctx: AuthContext, req: Request, res: Response, body: RequestBody): Promise<void> {
  const email = readTypedAddress(body.email)
  const returnTo = readReturnTo(ctx.settings, body.return_to === undefined ? [] : [body.return_to])
  const presented = presentedDevice(ctx, req, body)
  const asked = { action: 'email_login', answer: body.captcha, email, presented, isBraked: true } as const
  await withSignupMail(ctx, req, asked, (ctx) => mailAndAnswer(ctx, req, res, { email, returnTo, presented, token: body.invitation }))
}

async function mailAndAnswer(
  ctx: AuthContext,
  req: Request,
  res: Response,
  { email, returnTo, presented, token }: { email: string; returnTo: string | null; presented: PresentedDevice; token: string | undefined },
): Promise<void> {
  const device = await countLinkRequest(ctx, { name, email, client: clientOf(req), presented })
  const locale = localeOf(ctx, req)
  const id = randomUUID()
  const origin = { ip: req.ip, userAgent: req.headers['user-agent'] }
  const invitation = invitationOf(ctx, req, token)
  const request = { id, email, returnTo, locale, device, earlierId: requestOfBrowser(ctx, req), invitation, ...origin }
  await lookForNobody(ctx)
  const shown = ctx.showsLinks ? await requestEmailLogin(ctx, request) : null
  if (!ctx.showsLinks) ctx.background.run(name, () => requestEmailLogin(ctx, request))
  rememberRequest(ctx, res, id)
  const requestToken = signRequestToken(ctx, id)
  const [loginUrl, code] = [shown?.url ?? null, shown?.code ?? null]
  setResult(res, { requestToken, loginUrl, code })
  sendJson(res, 202, { message: ctx.texts.say(locale, 'message.link_requested'), request_token: requestToken, login_url: loginUrl, code })
}

interface ConfirmBody extends SignupOwnershipBody {
  token?: string
  code?: string
  request_token?: string
}

function confirmRoute(ctx: AuthContext, { base, delivery, before }: RouteSet): Route {
  return bodyWithFixedResponseTime(ctx, {
    method: 'POST',
    path: `${base}/email-login/confirm`,
    describes: {
      summary: 'Log in with the mailed link or code',
      needsOneOf: ['token', 'code'],
      answers: [loginAnswer(ctx, delivery)],
      refuses: [
        EmailLoginInvalidError,
        ...passwordRefusals(ctx),
        ...stateRefusals(ctx),
        TokenExpiredError,
        TooManyRequestsError,
        ...invitationRefusals(ctx),
      ],
      hostRefuses: ctx.settings.emailLoginSignup && (ctx.signup.onSignup ?? ctx.signup.admit) !== undefined,
    },
    delivers: 'login',
    before: [...before, routeRateLimit(ctx, 'email_login_confirm')],
    body: Joi.object<ConfirmBody>({
      token: text(512).optional(),
      // Any string counts as a wrong code, not as a malformed request.
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
  await forgetUsedInvitation(ctx, req, res, result.userId)
  if (browserRequestId !== null) forgetRequest(ctx, res)
  sendLogin(ctx, res, result, delivery)
}

/** The id of a code's request comes from the browser's cookie, or from the body of clients without cookies. */
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
