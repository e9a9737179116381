import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import {
  EmailLinkForbiddenError,
  InvalidCredentialsError,
  InvalidTokenError,
  LoginThrottledError,
  TokenExpiredError,
  TooManyRequestsError,
} from '../core/errors'
import { typedAddress } from '../http/email-address'
import { bodyWithFixedResponseTime } from '../http/fixed-response-time'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { passwordText, text } from '../http/validate'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { loginAnswer, sessionLoginAnswer } from '../sessions/delivery'
import { presentedDevice, previousToken } from '../sessions/devices/known-device'
import { loginClient, loginClientWith, sendLogin, sendSessionLogin } from '../sessions/devices/send-login'
import { clearEndedCookies } from '../sessions/ended-cookies'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { signupOwnershipOf } from './email-verification/signup-ownership'
import { hostGuard } from './host-guard'
import { logIn } from './log-in'
import { resetPassword } from './reset-password'

interface LoginBody {
  email: string
  password: string
  previous_token?: string
  remember: boolean
}

interface ResetBody {
  token: string
  new_password: string
  /** The old password. If nobody has verified the address before, the old password shows that the person created the account. */
  password?: string
  refresh_token?: string
}

const credentials = Joi.object<LoginBody>({
  email: typedAddress,
  password: passwordText(),
  ...previousToken,
  // True: the cookies last as long as the session. False: the browser deletes the cookies when it closes.
  remember: Joi.boolean().optional().default(true),
})

/** Routes for a login with email and password, and for the confirmation of a password reset. */
export function loginRoutes(ctx: AuthContext, { base, delivery, before }: RouteSet): Route[] {
  return [
    bodyWithFixedResponseTime(ctx, {
      method: 'POST',
      path: `${base}/login`,
      describes: {
        summary: 'Log in with email and password',
        answers: [loginAnswer(ctx, delivery)],
        refuses: [InvalidCredentialsError, LoginThrottledError],
      },
      loginShaped: true,
      before: [...before, ...hostGuard(ctx, 'login', 'login')],
      body: credentials,
      handle: async (ctx, req, res, body) => sendLogin(ctx, res, await logInBy(ctx, req, body, loginClient(ctx, req)), delivery),
    }),
    withBody({
      method: 'POST',
      path: `${base}/password-reset/confirm`,
      describes: {
        summary: 'Set a new password with the mailed link, and log in',
        answers: [loginAnswer(ctx, delivery)],
        refuses: [InvalidTokenError, InvalidCredentialsError, TokenExpiredError, EmailLinkForbiddenError, TooManyRequestsError],
      },
      loginShaped: true,
      before: [...before, routeRateLimit(ctx, 'password_reset_confirm')],
      body: Joi.object<ResetBody>({
        token: text(512),
        new_password: passwordText().allow(''),
        password: passwordText().allow('').optional(),
        refresh_token: text(4096).optional(),
      }),
      handle: async (req, res, { token, new_password: newPassword, ...body }) => {
        const locale = localeOf(ctx, req)
        const input = { token, newPassword, locale, evidence: await signupOwnershipOf(ctx, req, body) }
        const result = await resetPassword(ctx, input, loginClient(ctx, req))
        await clearEndedCookies(ctx, req, res)
        sendLogin(ctx, res, result, delivery)
      },
    }),
  ]
}

/**
 * Returns the route for a login with email and password that opens a server-side session. The route exists only if the store has sessions.
 * The login and its rate limits are the same as in the other login routes.
 */
export function sessionLoginRoute(ctx: AuthContext): Route[] {
  if (!ctx.store.sessions) return []
  return [
    bodyWithFixedResponseTime(ctx, {
      method: 'POST',
      path: '/session/login',
      describes: {
        summary: 'Log in with email and password, and get a session cookie',
        answers: [sessionLoginAnswer(ctx)],
        refuses: [InvalidCredentialsError, LoginThrottledError],
      },
      loginShaped: true,
      before: [sameSite(ctx), ...hostGuard(ctx, 'login', 'login')],
      body: credentials,
      handle: async (ctx, req, res, body) =>
        sendSessionLogin(ctx, res, await logInBy(ctx, req, body, loginClientWith(ctx, req, 'session'))),
    }),
  ]
}

function logInBy(
  ctx: AuthContext,
  req: Request,
  { email, password, remember, ...body }: LoginBody,
  client: LoginClient,
): Promise<AnyLoginResult> {
  const input = { email, password, client: clientOf(req), isPersistent: remember }
  return logIn(ctx, input, client, presentedDevice(ctx, req, body))
}
