import type { Request, RequestHandler } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../../context'
import { clientOf } from '../../core/client-key'
import { hasPasswords } from '../../core/config/every-setting'
import {
  EmailLinkForbiddenError,
  EmailLoginInvalidError,
  EmailNotVerifiedError,
  MfaCodeInvalidError,
  MfaFactorTooNewError,
  MfaNotEnrolledError,
  MfaRequiredError,
  MfaThrottledError,
  OAuthStateMismatchError,
  PasskeyRejectedError,
  TooManyRequestsError,
} from '../../core/errors'
import { type Answer, describeStep, descriptionOf, flag, instant, shape, string } from '../../http/description'
import { passwordText, text } from '../../http/input'
import { localeOf } from '../../http/locale'
import type { Route } from '../../http/routes'
import { sameSite } from '../../http/same-site'
import { sendJson, setResult } from '../../http/send'
import { optionsBody, requestOptionsSchema } from '../../passkeys/passkey-challenge'
import { passkeyReauthenticationOptions } from '../../passkeys/step-route'
import { factorCode } from '../../second-factor/accept-code'
import { optionalPasskey, type PasskeyFields, presentedPasskey } from '../../second-factor/irreversible-code'
import { ticketOwner } from '../../social/attempts'
import { readRefreshCookie, readSessionCookie } from '../cookies'
import { findAuth, readCredential } from '../current-auth'
import { loginSchema } from '../delivery'
import { presentedDevice, previousToken } from '../devices/device-cookie'
import { countLinkRequest } from '../devices/login-limits'
import { operation } from '../operation'
import type { RouteGuards } from '../routes-by-delivery'
import { sendReissuedTokens } from '../send-reissued-tokens'
import { codeDevice, requestConfirmationCode } from './confirmation-code'
import { requestSessionOf } from './fresh-session'
import { mailsCodes } from './methods'
import { reauthenticate } from './reauthenticate'

interface ReauthenticationBody extends PasskeyFields {
  password?: string
  code?: string
  /** The code from the mail of `POST /reauthenticate/email`. */
  email_code?: string
  /** The ticket from the callback of `POST /oauth/:provider/reauthenticate`. */
  ticket?: string
  /** Of the account. The client that has it counts as a known device. */
  previous_token?: string
  /** Live. The answer replaces it. It also identifies the session if the access token does not. */
  refresh_token?: string
}

function answer({ settings }: AuthContext): Answer {
  return {
    status: 200,
    description:
      'The session is confirmed. The response has a new access token. If the request shows the live refresh token of the session, the response also replaces that token. Otherwise `refresh_token` is null, and only the new access token is fresh.',
    schema: {
      oneOf: [
        loginSchema({ settings, loginTasks: null }),
        shape('FreshSession', { user_id: string, expires_at: instant, mfa_required: flag }),
      ],
    },
  }
}

export function reauthenticationRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  const both = { ...guards, requireAuth: () => requireTokenOrSession(ctx, guards) }
  return [
    ...reauthenticationRoute(ctx, both),
    ...(ctx.settings.passkeysEnabled ? passkeyOptionsRoute(ctx, both) : []),
    ...(mailsCodes(ctx) ? emailRoute(ctx, both) : []),
  ]
}

function reauthenticationRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/reauthenticate',
    inEachDelivery: true,
    summary: 'Confirm the session with a credential',
    needsOneOf: ['password', 'code', 'credential', 'email_code', 'ticket'],
    answers: [answer(ctx)],
    refuses: [
      OAuthStateMismatchError,
      MfaRequiredError,
      MfaFactorTooNewError,
      MfaCodeInvalidError,
      MfaNotEnrolledError,
      MfaThrottledError,
      TooManyRequestsError,
      ...(ctx.settings.passkeysEnabled ? [PasskeyRejectedError] : []),
      ...(mailsCodes(ctx) ? [EmailLoginInvalidError] : []),
    ],
    access: 'live session',
    limit: 'reauthenticate',
    body: Joi.object<ReauthenticationBody>({
      ...(hasPasswords(ctx.settings) && { password: passwordText().optional() }),
      code: factorCode.optional(),
      ...optionalPasskey(ctx),
      // Any string counts as a wrong code, not as a malformed request.
      ...(mailsCodes(ctx) && { email_code: Joi.string().allow('').optional() }),
      ticket: text(8192).optional(),
      ...previousToken,
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, { password, code, email_code: emailCode, ticket, ...body }, delivery) => {
      const { user, session } = requestSessionOf(req)
      // In delivery `both`, the plain route never changes the refresh cookie. A cookie that let the request in gets cookies as the answer.
      const isByCookie = delivery !== 'bearer' || readCredential(ctx, req)?.from !== 'header'
      const refreshToken = !isByCookie ? (body.refresh_token ?? null) : delivery === 'cookie' ? readRefreshCookie(ctx, req) : null
      const device = await codeDevice(ctx, req, { code, ...body })
      const who = { user, session, amr: findAuth(req)?.amr ?? [], refreshToken, device }
      const brought = ticket === undefined ? undefined : { text: ticket, owner: ticketOwner(ctx, req) }
      const presented = { password, code, passkey: presentedPasskey(body) ?? undefined, emailCode, ticket: brought }
      sendReissuedTokens(
        ctx,
        req,
        res,
        await reauthenticate(ctx, who, presented),
        delivery === 'bearer' && isByCookie ? 'cookie' : delivery,
      )
    },
  })
}

const mailed: Answer = {
  status: 202,
  description:
    'A code of eight digits is on its way to the address of the account. If the address got too many mails, no mail is sent. The code confirms only this session.',
  schema: shape('MailedCode', { message: string }),
}

const emailName = 'reauthenticate_email'

function emailRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/reauthenticate/email',
    inEachDelivery: true,
    summary: 'Request a mail with a code to confirm the session',
    answers: [mailed],
    refuses: [EmailNotVerifiedError, MfaRequiredError, EmailLinkForbiddenError, TooManyRequestsError],
    access: 'live session',
    limit: emailName,
    body: Joi.object<{ refresh_token?: string }>({ refresh_token: text(4096).optional() }),
    handle: async (req, res) => {
      const { user, session } = requestSessionOf(req)
      const locale = localeOf(ctx, req)
      const presented = presentedDevice(ctx, req)
      const device = await countLinkRequest(ctx, { name: emailName, email: user.email, client: clientOf(req), presented })
      const origin = { ip: req.ip, userAgent: req.headers['user-agent'] }
      await requestConfirmationCode(ctx, { user, session }, { locale, device, ...origin })
      sendJson(res, 202, { message: ctx.texts.say(locale, 'message.code_mailed') })
    },
  })
}

function passkeyOptionsRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/reauthenticate/passkey/options',
    inEachDelivery: true,
    summary: 'Get the options to confirm the session with a passkey',
    answers: [
      {
        status: 200,
        description: 'The options for `navigator.credentials.get()`, valid for 5 minutes in this session.',
        schema: requestOptionsSchema,
      },
    ],
    refuses: [MfaNotEnrolledError],
    access: 'live session',
    limit: 'reauthenticate_passkey_options',
    body: Joi.object<{ refresh_token?: string }>({ refresh_token: text(4096).optional() }),
    handle: async (req, res) => {
      const { user, session } = requestSessionOf(req)
      const begun = await passkeyReauthenticationOptions(ctx, { userId: user.id, session })
      setResult(res, begun)
      sendJson(res, 200, optionsBody(begun))
    },
  })
}

/** Without an access token, accepts the cookie of a server-side session, but not from other sites. */
function requireTokenOrSession(ctx: AuthContext, guards: RouteGuards): RequestHandler {
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
    return true // the token is malformed, and the guard rejects it
  }
}
