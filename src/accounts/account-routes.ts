import Joi from 'joi'
import type { AuthContext } from '../context'
import { hasPasswords } from '../core/config/has-passwords'
import { AccountInactiveError, MfaRequiredError, PasswordAlreadySetError, TooManyRequestsError, UnauthorizedError } from '../core/errors'
import { type Answer, done } from '../http/description'
import { localeOf } from '../http/locale'
import { setResult } from '../http/outcome'
import { type Route, withBody } from '../http/routes'
import { sendEmpty, sendJson } from '../http/send'
import { passwordText, text } from '../http/validate'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { codeBeforeFreshness } from '../second-factor/code-before-freshness'
import { confirmIrreversible, type IrreversibleFields, irreversibleBody, irreversibleRefusals } from '../second-factor/irreversible-code'
import { getAuth, getUser } from '../sessions/current-auth'
import { cookieOf, keepBrowser } from '../sessions/devices/keep-browser'
import { clearEndedCookies } from '../sessions/ended-cookies'
import { codeDevice } from '../sessions/reauthentication/code-device'
import { aliveSession, freshSession, sessionOf } from '../sessions/reauthentication/fresh-session'
import { factorPresented } from '../sessions/reauthentication/require-factor'
import type { RouteGuards } from '../sessions/route-guards'
import { type RouteSet, routesByDelivery } from '../sessions/routes-by-delivery'
import { sameSiteWhenByCookie } from '../sessions/same-site-by-cookie'
import { emailRoutes } from './email-routes'
import { setFirstPassword } from './first-password'
import { changePassword } from './password-change'
import { userBody, userSchema } from './public-user-schema'
import { updateProfile } from './update-profile'

/** Returns the routes for the account of the person who is logged in. */
export function accountRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  return [
    {
      method: 'GET',
      path: '/me',
      describes: { summary: 'Get the account of the signed-in person', answers: [me(ctx)] },
      before: [guards.requireUser()],
      handle: (req, res) => sendJson(res, 200, userBody(ctx.store.users, getUser(req))),
    },
    profileChange(ctx, guards),
    ...(hasPasswords(ctx.settings)
      ? routesByDelivery(ctx, (line) => [passwordChange(ctx, guards, line), firstPassword(ctx, guards, line)])
      : []),
    ...emailRoutes(ctx, guards),
  ]
}

function me({ store }: AuthContext): Answer {
  return { status: 200, description: 'The account.', schema: userSchema(store.users) }
}

interface ProfileBody {
  name?: string | null
  fields?: Record<string, unknown>
  /** The refresh token that identifies the session, if the access token does not. */
  refresh_token?: string
}

function profileChange(ctx: AuthContext, guards: RouteGuards): Route {
  return withBody({
    method: 'PATCH',
    path: '/me',
    describes: { summary: 'Change the name, and the fields of the application', answers: [me(ctx)], refuses: [TooManyRequestsError] },
    before: [routeRateLimit(ctx, 'profile'), guards.requireUser(), sameSiteWhenByCookie(ctx), aliveSession(ctx)],
    body: Joi.object<ProfileBody>({
      name: text(120).allow(null, '').optional(),
      fields: Joi.object().unknown().optional(),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, { name, fields }) => {
      const user = await updateProfile(ctx, { userId: getAuth(req).sub, name, fields, session: sessionOf(req) })
      setResult(res, user)
      sendJson(res, 200, userBody(ctx.store.users, user))
    },
  })
}

interface PasswordChangeBody extends IrreversibleFields {
  current_password: string
  new_password: string
  /** The refresh token that identifies the session, if the access token does not. */
  refresh_token?: string
}

function passwordChange(ctx: AuthContext, guards: RouteGuards, { base, delivery, before }: RouteSet): Route {
  return withBody({
    method: 'POST',
    path: `${base}/password-change`,
    describes: {
      summary: 'Change the password, and revoke all other sessions',
      answers: [done],
      refuses: [UnauthorizedError, AccountInactiveError, MfaRequiredError, TooManyRequestsError, ...irreversibleRefusals(ctx)],
    },
    before: [...before, routeRateLimit(ctx, 'password_change'), guards.requireAuth(), sameSiteWhenByCookie(ctx), aliveSession(ctx)],
    body: irreversibleBody<PasswordChangeBody>(ctx, {
      current_password: passwordText(),
      new_password: passwordText().allow(''),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, body) => {
      const [{ sub: userId, amr }, session] = [getAuth(req), sessionOf(req)]
      const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
      const { current_password: currentPassword, new_password: newPassword } = body
      const locale = localeOf(ctx, req)
      const cookie = cookieOf(ctx, req, delivery)
      const staying = await changePassword(ctx, { userId, currentPassword, newPassword, amr, session, cookie, isFinal, locale })
      await clearEndedCookies(ctx, req, res)
      keepBrowser(ctx, req, res, staying)
      sendEmpty(res)
    },
  })
}

/** Returns the route for an account without a password. The route needs a fresh session, because no password can confirm the person. */
function firstPassword(ctx: AuthContext, guards: RouteGuards, { base, delivery, before }: RouteSet): Route {
  return withBody({
    method: 'POST',
    path: `${base}/password/first`,
    describes: {
      summary: 'Set the first password of an account without a password',
      answers: [done],
      refuses: [PasswordAlreadySetError, TooManyRequestsError, ...irreversibleRefusals(ctx)],
    },
    before: [
      ...before,
      routeRateLimit(ctx, 'password_change'),
      guards.requireAuth(),
      sameSiteWhenByCookie(ctx),
      aliveSession(ctx),
      factorPresented(ctx),
      codeBeforeFreshness(ctx),
      freshSession(ctx),
    ],
    body: irreversibleBody<IrreversibleFields & { new_password: string; refresh_token?: string }>(ctx, {
      new_password: passwordText().allow(''),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, { new_password: newPassword, ...body }) => {
      const [{ sub: userId, amr }, session] = [getAuth(req), sessionOf(req)]
      const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
      const locale = localeOf(ctx, req)
      const cookie = cookieOf(ctx, req, delivery)
      keepBrowser(ctx, req, res, await setFirstPassword(ctx, { userId, newPassword, amr, session, cookie, isFinal, locale }))
      sendEmpty(res)
    },
  })
}
