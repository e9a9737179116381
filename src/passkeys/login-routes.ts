import type { Request } from 'express'
import Joi from 'joi'
import { hostGuard } from '../accounts/host-guard'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import { LoginThrottledError, PasskeyRejectedError, TooManyRequestsError } from '../core/errors'
import { bodyWithFixedResponseTime } from '../http/fixed-response-time'
import { setResult } from '../http/outcome'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { sendJson } from '../http/send'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { passkeyFields } from '../second-factor/irreversible-code'
import { loginAnswer, sessionLoginAnswer } from '../sessions/delivery'
import { loginClient, loginClientWith, sendLogin, sendSessionLogin } from '../sessions/devices/send-login'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { logInWithPasskey, passkeyLoginOptions } from './log-in'
import { loginOptionsSchema, optionsBody } from './options'

interface LoginBody {
  credential: object
  challenge_token: string
  remember: boolean
}

const credentials = Joi.object<LoginBody>({ ...passkeyFields, remember: Joi.boolean().optional().default(true) })
const describesLogin = { summary: 'Log in with a passkey', refuses: [PasskeyRejectedError, LoginThrottledError, TooManyRequestsError] }

/** Returns the routes for a login with a passkey. Such a login needs no address. */
export function passkeyLoginRoutes(ctx: AuthContext, { base, delivery, before }: RouteSet): Route[] {
  return [
    // The options are equal for every `tokenDelivery`, so one route is enough.
    ...(base === '' ? [optionsRoute(ctx)] : []),
    bodyWithFixedResponseTime(ctx, {
      method: 'POST',
      path: `${base}/passkeys/login`,
      describes: { ...describesLogin, answers: [loginAnswer(ctx, delivery)] },
      loginShaped: true,
      before: [...before, ...limits(ctx)],
      body: credentials,
      handle: async (ctx, req, res, body) => sendLogin(ctx, res, await logInBy(ctx, req, body, loginClient(ctx, req)), delivery),
    }),
  ]
}

/** Returns the route that logs in with a passkey and opens a server-side session. Returns no route if the store keeps no sessions. */
export function sessionPasskeyLoginRoute(ctx: AuthContext): Route[] {
  if (!ctx.store.sessions) return []
  return [
    bodyWithFixedResponseTime(ctx, {
      method: 'POST',
      path: '/session/passkeys/login',
      describes: { ...describesLogin, answers: [sessionLoginAnswer(ctx)] },
      loginShaped: true,
      before: [sameSite(ctx), ...limits(ctx)],
      body: credentials,
      handle: async (ctx, req, res, body) =>
        sendSessionLogin(ctx, res, await logInBy(ctx, req, body, loginClientWith(ctx, req, 'session'))),
    }),
  ]
}

function optionsRoute(ctx: AuthContext): Route {
  return withBody({
    method: 'POST',
    path: '/passkeys/login/options',
    describes: {
      summary: 'Get the options to log in with a passkey',
      answers: [
        {
          status: 200,
          description: 'The options for `navigator.credentials.get()`, valid for 15 minutes.',
          schema: loginOptionsSchema,
        },
      ],
    },
    before: [routeRateLimit(ctx, 'passkey_login_options')],
    body: Joi.object<object>({}),
    handle: (_req, res) => {
      const begun = passkeyLoginOptions(ctx)
      setResult(res, begun)
      sendJson(res, 200, optionsBody(begun))
    },
  })
}

/** Returns the middlewares that limit the route. `hostGuard` already includes the rate limit of the route. */
function limits(ctx: AuthContext) {
  return ctx.guardRequest ? hostGuard(ctx, 'login', 'passkey_login') : [routeRateLimit(ctx, 'passkey_login')]
}

function logInBy(
  ctx: AuthContext,
  req: Request,
  { credential, challenge_token: challenge, remember }: LoginBody,
  client: LoginClient,
): Promise<AnyLoginResult> {
  return logInWithPasskey(ctx, { credential, challenge, client: clientOf(req), isPersistent: remember }, client)
}
