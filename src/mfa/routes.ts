import Joi from 'joi'
import type { AuthContext } from '../context'
import {
  AccountInactiveError,
  MfaAlreadyEnrolledError,
  MfaCodeInvalidError,
  MfaNotEnrolledError,
  MfaThrottledError,
  MfaTokenInvalidError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../errors'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { done, shape, text as string } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { sendEmpty, sendJson } from '../http/send'
import { passwordText, text } from '../http/validate'
import type { AccessTokenClaims } from '../session/access-token'
import { loginAnswer, sendLogin, shownSession } from '../session/delivery'
import { openTokenPair } from '../session/finish-login'
import { openServerSession } from '../session/open-server-session'
import { type DeliveryLine, perDelivery } from '../session/per-delivery'
import { originOf, sendSessionLogin, sessionLoginAnswer } from '../session/session-cookie'
import { refuseSupersededToken } from '../session/superseded-token'
import { findActiveUser } from '../step-up/find-active-user'
import { reauthenticate } from '../step-up/reauthenticate'
import { challengeForm } from './challenge-form'
import { changePasswordWithMfa } from './change-password'
import { confirmTotp } from './confirm'
import { disableTotp, regenerateRecoveryCodes } from './disable'
import { enrollTotp, type UserCheck } from './enroll'
import { verifyMfa } from './verify-challenge'

/** The second factor. Switched off, its routes are not there; a password change by code stays (specification, Other errors). */
export function mfaRoutes(ctx: AuthContext, guards: Guards): Route[] {
  const passwordChange = perDelivery(ctx, (line) => [passwordChangeLine(ctx, guards, line)])
  if (!ctx.settings.mfaEnabled) return passwordChange
  return [
    ...passwordChange,
    ...perDelivery(ctx, (line) => loginLines(ctx, guards, line)),
    ...sessionLine(ctx),
    ...enrolmentLines(ctx, guards),
  ]
}

/** Six digits or a recovery code; anything else that is text is a wrong code (contract section 12, MFA). */
const code = text(256).allow('')
const refreshToken = text(4096).optional()
const verification = Joi.object<{ mfa_token: string; code: string }>({ mfa_token: text(4096), code })

const unauthorized = [UnauthorizedError, AccountInactiveError, TooManyRequestsError]
const codeRefusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaThrottledError]
const describesVerify = {
  summary: 'Finish a login with a code of the second factor, or a recovery code',
  refuses: [MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError],
}
const recoveryCodes = { type: 'array', items: string }
const recoveryCodesSchema = shape('RecoveryCodes', { recovery_codes: recoveryCodes })
const enrolmentSchema = shape('Enrolment', { secret: string, provisioning_uri: string, qr_svg: string, recovery_codes: recoveryCodes })

interface DisableBody {
  password?: string
  code: string
  /** Names the session that goes on. */
  refresh_token?: string
}

interface PasswordBody {
  code: string
  new_password: string
  /** Names the session that goes on. */
  refresh_token?: string
}

function enrolmentLines(ctx: AuthContext, guards: Guards): Route[] {
  const before = [routeBudget(ctx, 'mfa'), guards.requireAuth(), sameSiteWhenByCookie(ctx)]
  const delivery = ctx.settings.tokenDelivery === 'cookie' ? 'cookie' : 'bearer'
  return [
    withBody({
      method: 'POST',
      path: '/mfa/enroll',
      describes: {
        summary: 'Begin with a second factor',
        answers: [{ status: 200, description: 'Shown once. Nothing is asked for until /mfa/confirm.', schema: enrolmentSchema }],
        refuses: [...unauthorized, MfaAlreadyEnrolledError],
      },
      before,
      body: Joi.object<{ password?: string }>({ password: passwordText().optional() }),
      handle: async (req, res, { password }) => {
        const claims = getAuth(req)
        await reauthenticate(ctx, await findActiveUser(ctx, claims.sub), password)
        const { secret, provisioningUri, qrSvg, recoveryCodes } = await enrollTotp(ctx, claims.sub, notPutOut(claims))
        sendJson(res, 200, { secret, provisioning_uri: provisioningUri, qr_svg: qrSvg, recovery_codes: recoveryCodes })
      },
    }),
    withBody({
      method: 'POST',
      path: '/mfa/recovery-codes',
      describes: {
        summary: 'A new set of recovery codes',
        answers: [{ status: 200, description: 'Shown once; the old set is dead.', schema: recoveryCodesSchema }],
        refuses: [...unauthorized, ...codeRefusals],
      },
      before,
      body: Joi.object<{ code: string }>({ code }),
      handle: async (req, res, body) =>
        sendJson(res, 200, {
          recovery_codes: await regenerateRecoveryCodes(ctx, {
            userId: getAuth(req).sub,
            code: body.code,
            locale: localeOf(req, ctx.settings.defaultLocale),
          }),
        }),
    }),
    withBody({
      method: 'POST',
      path: '/mfa/disable',
      describes: { summary: 'Take the second factor off', answers: [done], refuses: [...unauthorized, ...codeRefusals] },
      before,
      body: Joi.object<DisableBody>({ password: passwordText().optional(), code, refresh_token: refreshToken }),
      handle: async (req, res, body) => {
        const keep = shownSession(ctx, req, body, delivery)
        await disableTotp(ctx, {
          userId: getAuth(req).sub,
          password: body.password,
          code: body.code,
          keep,
          locale: localeOf(req, ctx.settings.defaultLocale),
        })
        sendEmpty(res)
      },
    }),
  ]
}

/** What ends in a session. */
function loginLines(ctx: AuthContext, guards: Guards, line: DeliveryLine): Route[] {
  const { base, delivery, before } = line
  return [
    ...challengeForm(ctx, line),
    withBody({
      method: 'POST',
      path: `${base}/mfa/verify`,
      describes: { ...describesVerify, answers: [loginAnswer(delivery)] },
      loginShaped: true,
      before,
      body: verification,
      handle: async (req, res, { mfa_token: mfaToken, code }) => {
        const locale = localeOf(req, ctx.settings.defaultLocale)
        sendLogin(ctx, res, await verifyMfa(ctx, { mfaToken, code, locale }, openTokenPair), delivery)
      },
    }),
    withBody({
      method: 'POST',
      path: `${base}/mfa/confirm`,
      describes: {
        summary: 'Show the first code: the second factor is active, every other session ended',
        answers: [loginAnswer(delivery)],
        refuses: [...unauthorized, ...codeRefusals, MfaAlreadyEnrolledError],
      },
      loginShaped: true,
      before: [...before, routeBudget(ctx, 'mfa_confirm'), guards.requireAuth(), sameSiteWhenByCookie(ctx)],
      body: Joi.object<{ code: string }>({ code }),
      handle: async (req, res, body) => {
        const claims = getAuth(req)
        const { sub: userId, amr } = claims
        const locale = localeOf(req, ctx.settings.defaultLocale)
        sendLogin(ctx, res, await confirmTotp(ctx, { userId, amr, code: body.code, locale }, notPutOut(claims)), delivery)
      },
    }),
  ]
}

/** The same second step, into a server-side session. */
function sessionLine(ctx: AuthContext): Route[] {
  if (!ctx.store.sessions) return []
  return [
    withBody({
      method: 'POST',
      path: '/session/mfa/verify',
      describes: { ...describesVerify, answers: [sessionLoginAnswer] },
      loginShaped: true,
      before: [sameSite(ctx.settings)],
      body: verification,
      handle: async (req, res, { mfa_token: mfaToken, code }) => {
        const locale = localeOf(req, ctx.settings.defaultLocale)
        sendSessionLogin(ctx, res, await verifyMfa(ctx, { mfaToken, code, locale }, openServerSession(originOf(ctx, req))))
      },
    }),
  ]
}

/** Whoever a reset has just put out must not lock the owner out, by a factor of before it or of after it. */
function notPutOut(claims: AccessTokenClaims): UserCheck {
  return (ctx, user) => refuseSupersededToken(ctx, claims, user)
}

function passwordChangeLine(ctx: AuthContext, guards: Guards, { base, delivery, before }: DeliveryLine): Route {
  return withBody({
    method: 'POST',
    path: `${base}/password-change/mfa`,
    describes: {
      summary: 'Change the password by a code of the second factor, and end every other session',
      answers: [done],
      refuses: [...unauthorized, ...codeRefusals],
    },
    before: [...before, routeBudget(ctx, 'password_change'), guards.requireAuth(), sameSiteWhenByCookie(ctx)],
    body: Joi.object<PasswordBody>({ code, new_password: passwordText().allow(''), refresh_token: refreshToken }),
    handle: async (req, res, body) => {
      const keep = shownSession(ctx, req, body, delivery)
      const locale = localeOf(req, ctx.settings.defaultLocale)
      await changePasswordWithMfa(ctx, { userId: getAuth(req).sub, code: body.code, newPassword: body.new_password, keep, locale })
      sendEmpty(res)
    },
  })
}
