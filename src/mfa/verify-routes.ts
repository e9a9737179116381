import Joi from 'joi'
import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaThrottledError, MfaTokenInvalidError } from '../errors'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { text } from '../http/validate'
import { loginAnswer, sendLogin } from '../session/delivery'
import { openServerSession, openTokens } from '../session/open-session'
import type { DeliveryLine } from '../session/per-delivery'
import { originOf, sendSessionLogin, sessionLoginAnswer } from '../session/session-cookie'
import { challengeForm } from './challenge-form'
import { factorCode } from './factor-code'
import { verifyMfa } from './verify-challenge'

const verification = Joi.object<{ mfa_token: string; code: string }>({ mfa_token: text(4096), code: factorCode })
const describesVerify = {
  summary: 'Finish a login with a code of the second factor, or a recovery code',
  refuses: [MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError],
}

/** The second step of a login: JSON, and the form of a mailed link's page. */
export function verifyRoutes(ctx: AuthContext, line: DeliveryLine): Route[] {
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
        sendLogin(ctx, res, await verifyMfa(ctx, { mfaToken, code, locale }, openTokens(originOf(ctx, req))), delivery)
      },
    }),
  ]
}

/** The same second step, into a server-side session. */
export function sessionVerifyRoutes(ctx: AuthContext): Route[] {
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
