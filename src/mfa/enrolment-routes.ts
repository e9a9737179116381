import Joi from 'joi'
import type { AuthContext } from '../context'
import { MfaAlreadyEnrolledError } from '../errors'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { done, shape, string } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sendEmpty, sendJson } from '../http/send'
import { passwordText } from '../http/validate'
import type { AccessTokenClaims } from '../session/access-token'
import { loginAnswer, sendLogin, shownSession } from '../session/delivery'
import { openTokens } from '../session/open-session'
import { type DeliveryLine, perDelivery } from '../session/per-delivery'
import { originOf } from '../session/session-cookie'
import { refuseSupersededToken } from '../session/superseded-token'
import { findActiveUser } from '../step-up/find-active-user'
import { reauthenticate } from '../step-up/reauthenticate'
import { confirmTotp } from './confirm'
import { disableTotp, regenerateRecoveryCodes } from './disable'
import { enrollTotp, type UserCheck } from './enroll'
import { codeRefusals, factorCode, keptRefreshToken, unauthorized } from './factor-code'

const recoveryCodes = { type: 'array', items: string }
const recoveryCodesSchema = shape('RecoveryCodes', { recovery_codes: recoveryCodes })
const enrolmentSchema = shape('Enrolment', { secret: string, provisioning_uri: string, qr_svg: string, recovery_codes: recoveryCodes })

interface DisableBody {
  password?: string
  code: string
  /** Names the session that goes on. */
  refresh_token?: string
}

/** Taking a second factor on, and off again. */
export function enrolmentRoutes(ctx: AuthContext, guards: Guards): Route[] {
  const before = [routeBudget(ctx, 'mfa'), guards.requireAuth(), sameSiteWhenByCookie(ctx)]
  const delivery = ctx.settings.tokenDelivery === 'cookie' ? 'cookie' : 'bearer'
  return [
    ...perDelivery(ctx, (line) => [confirmRoute(ctx, guards, line)]),
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
      body: Joi.object<{ code: string }>({ code: factorCode }),
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
      body: Joi.object<DisableBody>({ password: passwordText().optional(), code: factorCode, refresh_token: keptRefreshToken }),
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

/** The first code. Every other session ends, and the one that was shown is answered anew. */
function confirmRoute(ctx: AuthContext, guards: Guards, { base, delivery, before }: DeliveryLine): Route {
  return withBody({
    method: 'POST',
    path: `${base}/mfa/confirm`,
    describes: {
      summary: 'Show the first code: the second factor is active, every other session ended',
      answers: [loginAnswer(delivery)],
      refuses: [...unauthorized, ...codeRefusals, MfaAlreadyEnrolledError],
    },
    loginShaped: true,
    before: [...before, routeBudget(ctx, 'mfa_confirm'), guards.requireAuth(), sameSiteWhenByCookie(ctx)],
    body: Joi.object<{ code: string }>({ code: factorCode }),
    handle: async (req, res, body) => {
      const claims = getAuth(req)
      const { sub: userId, amr } = claims
      const locale = localeOf(req, ctx.settings.defaultLocale)
      sendLogin(
        ctx,
        res,
        await confirmTotp(ctx, { userId, amr, code: body.code, locale }, openTokens(originOf(ctx, req)), notPutOut(claims)),
        delivery,
      )
    },
  })
}

/** Whoever a reset has just put out must not lock the owner out, by a factor of before it or of after it. */
function notPutOut(claims: AccessTokenClaims): UserCheck {
  return (ctx, user) => refuseSupersededToken(ctx, claims, user)
}
