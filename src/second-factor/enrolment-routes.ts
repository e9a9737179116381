import Joi from 'joi'
import type { AuthContext } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import { MfaAlreadyEnrolledError, ReauthenticationRequiredError } from '../core/errors'
import { done, shape, string } from '../http/description'
import { passwordText } from '../http/input'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendEmpty, sendJson, setResult } from '../http/send'
import { readRefreshCookie } from '../sessions/cookies'
import { clearEndedCookies, getAuth } from '../sessions/current-auth'
import { loginAnswer } from '../sessions/delivery'
import { operation } from '../sessions/operation'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { sessionOf } from '../sessions/reauthentication/fresh-session'
import { verifiedAddress } from '../sessions/reauthentication/irreversible-change'
import { isLiveToken } from '../sessions/reissue-tokens'
import { type RouteGuards, routesByDelivery } from '../sessions/routes-by-delivery'
import { sendReissuedTokens } from '../sessions/send-reissued-tokens'
import { refuseSupersededToken } from '../sessions/superseded-token'
import { codeRefusals, factorCode, keptRefreshToken, unauthorized } from './accept-code'
import { passwordChangeRoute } from './change-password'
import { confirmInSession } from './confirm'
import { disableTotp, regenerateRecoveryCodes } from './disable'
import { enrollTotp, enrolmentBody, enrolmentSchema } from './enroll'
import {
  codeOrPasskey,
  factorRefusals,
  type IrreversibleFields,
  irreversibleBody,
  irreversibleRefusals,
  presentedFactor,
} from './irreversible-code'
import { sessionVerifyRoutes, verifyRoutes } from './verify-routes'

const recoveryCodes = { type: 'array', items: string }
const recoveryCodesSchema = shape('RecoveryCodes', { recovery_codes: recoveryCodes })

interface ConfirmedBody extends IrreversibleFields {
  /** Identifies the session, if the access token does not. */
  refresh_token?: string
}

function enrolmentRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  return [
    ...confirmRoute(ctx, guards),
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/mfa/enroll',
      summary: 'Begin to set up a second factor, or to replace the active second factor',
      answers: [
        {
          status: 200,
          description: 'The secret, shown once. The second factor changes only at `POST /mfa/confirm`.',
          schema: enrolmentSchema,
        },
      ],
      refuses: [...unauthorized, MfaAlreadyEnrolledError, ...irreversibleRefusals(ctx)],
      access: 'fresh session',
      limit: 'mfa',
      checks: [verifiedAddress(ctx)],
      body: irreversibleBody<ConfirmedBody>(ctx, { refresh_token: keptRefreshToken }),
      handle: async (req, res, body) => {
        const [claims, session] = [getAuth(req), sessionOf(req)]
        const enrolment = await enrollTotp(ctx, claims.sub, {
          session,
          check: (ctx, user) => refuseSupersededToken(ctx, { claims, session }, user),
          ...presentedFactor(body),
          device: await codeDevice(ctx, req, body),
          locale: localeOf(ctx, req),
        })
        setResult(res, enrolment)
        sendJson(res, 200, enrolmentBody(enrolment))
      },
    }),
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/mfa/recovery-codes',
      summary: 'Make new recovery codes',
      answers: [{ status: 200, description: 'The new codes, shown once. The old codes are invalid.', schema: recoveryCodesSchema }],
      refuses: [...unauthorized, ...factorRefusals(ctx)],
      access: 'fresh session',
      limit: 'mfa',
      isCodeRequired: true,
      body: codeOrPasskey<ConfirmedBody>(ctx, { refresh_token: keptRefreshToken }),
      handle: async (req, res, body) => {
        const locale = localeOf(ctx, req)
        const codes = await regenerateRecoveryCodes(ctx, {
          userId: getAuth(req).sub,
          session: sessionOf(req),
          ...presentedFactor(body),
          device: await codeDevice(ctx, req, body),
          locale,
        })
        setResult(res, codes)
        sendJson(res, 200, { recovery_codes: codes })
      },
    }),
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/mfa/disable',
      summary: 'Remove the second factor',
      answers: [done],
      refuses: [...unauthorized, ...factorRefusals(ctx)],
      access: 'fresh session',
      limit: 'mfa',
      isCodeRequired: true,
      body: codeOrPasskey<ConfirmedBody & { password?: string }>(ctx, {
        ...(hasPasswords(ctx.settings) && { password: passwordText().optional() }),
        refresh_token: keptRefreshToken,
      }),
      handle: async (req, res, body) => {
        await disableTotp(ctx, {
          userId: getAuth(req).sub,
          password: body.password,
          ...presentedFactor(body),
          device: await codeDevice(ctx, req, body),
          session: sessionOf(req),
          locale: localeOf(ctx, req),
        })
        await clearEndedCookies(ctx, req, res)
        sendEmpty(res)
      },
    }),
  ]
}

/** Revokes every other session. The session of the request gets a new refresh token if it shows the current one. */
function confirmRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/mfa/confirm',
    inEachDelivery: true,
    summary: 'Activate the second factor with its first code, and revoke all other sessions',
    answers: (delivery) => [loginAnswer({ ...ctx, loginTasks: null }, delivery)],
    refuses: [...unauthorized, ...codeRefusals, MfaAlreadyEnrolledError, ReauthenticationRequiredError],
    delivers: 'login',
    access: 'live session',
    limit: 'mfa_confirm',
    body: Joi.object<{ code: string; refresh_token?: string }>({ code: factorCode, refresh_token: keptRefreshToken }),
    handle: async (req, res, body, delivery) => {
      const session = sessionOf(req)
      const cookie = delivery === 'cookie' ? readRefreshCookie(ctx, req) : null
      // Any token but the live one counts as not sent.
      const isInBody = session === null ? cookie === null : isLiveToken(session, body.refresh_token ?? null)
      const asking = { session, claims: getAuth(req), refreshToken: isInBody ? (body.refresh_token ?? null) : cookie }
      const locale = localeOf(ctx, req)
      const kept = await confirmInSession(ctx, { code: body.code, locale }, asking)
      await clearEndedCookies(ctx, req, res)
      sendReissuedTokens(ctx, req, res, kept, delivery)
    },
  })
}

/** With `mfaEnabled` off, only the password change by code remains. */
export function mfaRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  const passwordChange = hasPasswords(ctx.settings) ? passwordChangeRoute(ctx, guards) : []
  if (!ctx.settings.mfaEnabled) return passwordChange
  return [
    ...passwordChange,
    ...routesByDelivery(ctx, (line) => verifyRoutes(ctx, line)),
    ...sessionVerifyRoutes(ctx),
    ...enrolmentRoutes(ctx, guards),
  ]
}
