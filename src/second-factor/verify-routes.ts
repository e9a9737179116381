import type { Request } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaThrottledError, MfaTokenInvalidError, PasskeyRejectedError } from '../core/errors'
import { bodyWithFixedResponseTime } from '../http/fixed-response-time'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sameSite } from '../http/same-site'
import { text } from '../http/validate'
import { loginAnswer, sessionLoginAnswer } from '../sessions/delivery'
import { presentedDevice, previousToken } from '../sessions/devices/known-device'
import { loginClient, loginClientWith, sendLogin, sendSessionLogin } from '../sessions/devices/send-login'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { challengeForm } from './challenge-form'
import { codeOrPasskey, type IrreversibleFields, type PasskeyFields } from './irreversible-code'
import { verifyMfa } from './verify-challenge'

interface VerificationBody extends IrreversibleFields, PasskeyFields {
  mfa_token: string
  previous_token?: string
}

function verification(ctx: AuthContext): Joi.ObjectSchema<VerificationBody> {
  return codeOrPasskey<VerificationBody>(ctx, { mfa_token: text(4096), ...previousToken })
}

function describesVerify({ settings }: AuthContext) {
  const refuses = [MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError]
  return settings.passkeysEnabled
    ? {
        summary: 'Finish a login with a code of the second factor, a recovery code, or a passkey',
        refuses: [...refuses, PasskeyRejectedError],
      }
    : { summary: 'Finish a login with a code of the second factor, or a recovery code', refuses }
}

/** Returns the routes that finish a login with a second factor. One route is for JSON, and one route is for our page's form. */
export function verifyRoutes(ctx: AuthContext, line: RouteSet): Route[] {
  const { base, delivery, before } = line
  return [
    ...challengeForm(ctx, line),
    bodyWithFixedResponseTime(ctx, {
      method: 'POST',
      path: `${base}/mfa/verify`,
      describes: { ...describesVerify(ctx), answers: [loginAnswer(ctx, delivery)] },
      loginShaped: true,
      before,
      body: verification(ctx),
      handle: async (ctx, req, res, body) => sendLogin(ctx, res, await verifyBy(ctx, req, body, loginClient(ctx, req)), delivery),
    }),
  ]
}

/** Returns the route that finishes a login with a second factor and opens a server-side session. */
export function sessionVerifyRoutes(ctx: AuthContext): Route[] {
  if (!ctx.store.sessions) return []
  return [
    bodyWithFixedResponseTime(ctx, {
      method: 'POST',
      path: '/session/mfa/verify',
      describes: { ...describesVerify(ctx), answers: [sessionLoginAnswer(ctx)] },
      loginShaped: true,
      before: [sameSite(ctx)],
      body: verification(ctx),
      handle: async (ctx, req, res, body) =>
        sendSessionLogin(ctx, res, await verifyBy(ctx, req, body, loginClientWith(ctx, req, 'session'))),
    }),
  ]
}

function verifyBy(
  ctx: AuthContext,
  req: Request,
  { mfa_token: mfaToken, code, credential, challenge_token: challenge, ...body }: VerificationBody,
  client: LoginClient,
): Promise<AnyLoginResult> {
  const locale = localeOf(ctx, req)
  return verifyMfa(ctx, { mfaToken, code, credential, challenge, locale }, client, presentedDevice(ctx, req, body))
}
