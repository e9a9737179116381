import type { Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../context'
import { cookieOf, keepBrowser } from '../device/keep-browser'
import { MfaFactorTooNewError } from '../errors'
import { codeBeforeFreshness } from '../factor/code-before-freshness'
import { keptRefreshToken, unauthorized } from '../factor/factor-code'
import { codeOrPasskey, type FinalFields, factorRefusals, shownFactor } from '../factor/final-code'
import { getAuth } from '../guards/current-auth'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { describeStep, done } from '../http/description'
import { readJsonBody } from '../http/json-body'
import { localeOf } from '../http/locale'
import { type Route, step, withBody } from '../http/routes'
import { sendEmpty } from '../http/send'
import { passwordText } from '../http/validate'
import { clearEndedCookies } from '../session/ended-cookies'
import type { DeliveryLine } from '../session/per-delivery'
import type { RouteGuards } from '../session/route-guards'
import { codeDevice } from '../step-up/code-device'
import { aliveSession, freshSession, requestSessionOf, sessionOf } from '../step-up/fresh-session'
import { hasYoungFactor, refuseYoungFactor } from '../step-up/young-credential'
import { changePasswordWithMfa } from './change-password'

interface PasswordBody extends FinalFields {
  new_password: string
  /** The refresh token that identifies the session, if the access token does not. */
  refresh_token?: string
}

/** Returns the route that changes the password with a code or a passkey. */
export function passwordChangeRoute(ctx: AuthContext, guards: RouteGuards, { base, delivery, before }: DeliveryLine): Route {
  return withBody({
    method: 'POST',
    path: `${base}/password-change/mfa`,
    describes: {
      summary: 'Change the password with the second factor, and revoke all other sessions',
      answers: [done],
      refuses: [...unauthorized, ...factorRefusals(ctx)],
    },
    before: [
      ...before,
      routeBudget(ctx, 'password_change'),
      guards.requireAuth(),
      sameSiteWhenByCookie(ctx),
      aliveSession(ctx),
      matureFactor(ctx),
      codeBeforeFreshness(ctx),
      freshSession(ctx),
    ],
    body: codeOrPasskey<PasswordBody>(ctx, { new_password: passwordText().allow(''), refresh_token: keptRefreshToken }),
    handle: async (req, res, body) => {
      const locale = localeOf(ctx, req)
      const staying = await changePasswordWithMfa(ctx, {
        userId: getAuth(req).sub,
        ...shownFactor(body),
        device: await codeDevice(ctx, req, body),
        newPassword: body.new_password,
        session: sessionOf(req),
        cookie: cookieOf(ctx, req, delivery),
        locale,
      })
      await clearEndedCookies(ctx, req, res)
      keepBrowser(ctx, req, res, staying)
      sendEmpty(res)
    },
  })
}

/**
 * Returns a middleware that rejects a code of a second factor that was added less than 24 hours ago, because the code replaces the old
 * password. The middleware runs after `aliveSession`. `changePasswordWithMfa` checks the age of a passkey.
 */
function matureFactor(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    const { user } = requestSessionOf(req)
    if (hasYoungFactor(ctx, user) && !(await showsPasskey(ctx, req, res))) refuseYoungFactor(ctx, user)
  })
  return describeStep(check, { refuses: [MfaFactorTooNewError] })
}

async function showsPasskey({ settings }: AuthContext, req: Request, res: Response): Promise<boolean> {
  return settings.passkeysEnabled && Object(await readJsonBody(req, res))['credential'] !== undefined
}
