import type { Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../context'
import { MfaFactorTooNewError } from '../core/errors'
import { describeStep, done } from '../http/description'
import { readJsonBody } from '../http/json-body'
import { localeOf } from '../http/locale'
import { type Route, step, withBody } from '../http/routes'
import { sendEmpty } from '../http/send'
import { passwordText } from '../http/validate'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { getAuth } from '../sessions/current-auth'
import { cookieOf, keepBrowser } from '../sessions/devices/keep-browser'
import { clearEndedCookies } from '../sessions/ended-cookies'
import { codeDevice } from '../sessions/reauthentication/code-device'
import { hasYoungFactor, refuseYoungFactor } from '../sessions/reauthentication/credential-age'
import { aliveSession, freshSession, requestSessionOf, sessionOf } from '../sessions/reauthentication/fresh-session'
import type { RouteGuards } from '../sessions/route-guards'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { sameSiteWhenByCookie } from '../sessions/same-site-by-cookie'
import { changePasswordWithMfa } from './change-password'
import { codeBeforeFreshness } from './code-before-freshness'
import { keptRefreshToken, unauthorized } from './factor-code'
import { codeOrPasskey, factorRefusals, type IrreversibleFields, presentedFactor } from './irreversible-code'

interface PasswordBody extends IrreversibleFields {
  new_password: string
  /** The refresh token that identifies the session, if the access token does not. */
  refresh_token?: string
}

/** Returns the route that changes the password with a code or a passkey. */
export function passwordChangeRoute(ctx: AuthContext, guards: RouteGuards, { base, delivery, before }: RouteSet): Route {
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
      routeRateLimit(ctx, 'password_change'),
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
        ...presentedFactor(body),
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
