import type { Request, RequestHandler } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { findKnownDevice, shownDevice } from '../device/known-device'
import {
  MfaCodeInvalidError,
  MfaFactorTooNewError,
  MfaNotEnrolledError,
  MfaRequiredError,
  MfaThrottledError,
  OAuthStateMismatchError,
  TooManyRequestsError,
} from '../errors'
import { factorCode } from '../factor/factor-code'
import { readCredential } from '../guards/credentials'
import { findAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { type Answer, describeStep, descriptionOf, flag, instant, shape, string } from '../http/description'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { passwordText, text } from '../http/validate'
import { loginSchema, readRefreshCookie } from '../session/delivery'
import { type DeliveryLine, perDelivery } from '../session/per-delivery'
import { sendKept } from '../session/send-kept'
import { readSessionCookie } from '../session/session-cookie'
import { ticketOwner } from '../social/bound-attempt'
import { aliveSession, requestSessionOf } from '../step-up/fresh-session'
import { reauthenticate } from './reauthenticate'

interface ReauthenticationBody {
  password?: string
  code?: string
  /** From the callback of `POST /oauth/:provider/reauthenticate`. */
  ticket?: string
  /** Names the session of the request, where the access token does not. */
  refresh_token?: string
}

const answer: Answer = {
  status: 200,
  description:
    'The session is fresh, and the new access token says so; `refresh_token` is null. In deliveries with cookies the session’s cookie has a new value.',
  schema: {
    oneOf: [loginSchema, shape('FreshSession', { user_id: string, expires_at: instant, mfa_required: flag })],
  },
}

/** A signed-in person confirms that it is them. */
export function reauthenticationRoutes(ctx: AuthContext, guards: Guards): Route[] {
  return perDelivery(ctx, (line) => [reauthenticationRoute(ctx, guards, line)])
}

function reauthenticationRoute(ctx: AuthContext, guards: Guards, { base, delivery, before }: DeliveryLine): Route {
  return withBody({
    method: 'POST',
    path: `${base}/reauthenticate`,
    describes: {
      summary: 'Show a credential again: the session is fresh',
      answers: [answer],
      refuses: [
        OAuthStateMismatchError,
        MfaRequiredError,
        MfaFactorTooNewError,
        MfaCodeInvalidError,
        MfaNotEnrolledError,
        MfaThrottledError,
        TooManyRequestsError,
      ],
    },
    before: [...before, routeBudget(ctx, 'reauthenticate'), signedIn(ctx, guards), sameSiteWhenByCookie(ctx), aliveSession(ctx)],
    body: Joi.object<ReauthenticationBody>({
      password: passwordText().optional(),
      code: factorCode.optional(),
      ticket: text(8192).optional(),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, { password, code, ticket }) => {
      const { user, session } = requestSessionOf(req)
      const refreshToken = delivery === 'cookie' ? readRefreshCookie(ctx, req) : null
      const device = code === undefined ? null : await findKnownDevice(ctx, user.email, shownDevice(ctx, req))
      const who = { user, session, amr: findAuth(req)?.amr ?? [], refreshToken, device }
      const shown = { password, code, ticket: ticket === undefined ? undefined : { text: ticket, owner: ticketOwner(ctx, req) } }
      sendKept(ctx, res, await reauthenticate(ctx, who, shown), delivery)
    },
  })
}

/** By an access token, else by the cookie of a server-side session, which no other site may use. */
function signedIn(ctx: AuthContext, guards: Guards): RequestHandler {
  const byToken = guards.requireAuth()
  if (!ctx.store.sessions) return byToken
  const [bySession, ownSite] = [guards.requireSession(), sameSite(ctx)]
  const choose: RequestHandler = (req, res, next) => {
    if (hasToken(ctx, req) || readSessionCookie(ctx, req) === null) return void byToken(req, res, next)
    ownSite(req, res, (error?: unknown) => (error ? next(error) : bySession(req, res, next)))
  }
  return describeStep(choose, descriptionOf(byToken) ?? { refuses: [] })
}

function hasToken(ctx: AuthContext, req: Request): boolean {
  try {
    return readCredential(ctx, req) !== null
  } catch {
    return true // one that cannot be read: the guard refuses it
  }
}
