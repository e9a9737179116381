import Joi from 'joi'
import type { AuthContext } from '../context'
import { hasPasswords } from '../core/config/every-setting'
import { AccountInactiveError, MfaRequiredError, PasswordAlreadySetError, TooManyRequestsError, UnauthorizedError } from '../core/errors'
import { type Answer, done, flag, instant, instantOrNull, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import { passwordText, text } from '../http/input'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendEmpty, sendJson, setResult } from '../http/send'
import { confirmIrreversible, type IrreversibleFields, irreversibleBody, irreversibleRefusals } from '../second-factor/irreversible-code'
import { clearEndedCookies, getAuth, getUser } from '../sessions/current-auth'
import { operation } from '../sessions/operation'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { sessionOf } from '../sessions/reauthentication/fresh-session'
import { factorPresented } from '../sessions/reauthentication/irreversible-change'
import { type RouteGuards, routesByDelivery } from '../sessions/routes-by-delivery'
import { cookieOf, keepBrowser } from '../sessions/send-reissued-tokens'
import type { UserStore } from '../store/auth-store'
import type { PublicUser } from '../store/user-records'
import { activationRoutes } from './activate'
import { emailRoutes } from './email-routes'
import { activationPage, resetPage } from './link-pages'
import { linkRequestRoutes } from './link-request-routes'
import { changePassword, setFirstPassword } from './password-change'
import { loginRoutes, sessionLoginRoutes } from './password-login'
import { signupRoutes } from './signup-routes'
import { updateProfile } from './update-profile'

export function accountRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  return [
    ...operation(ctx, guards, {
      method: 'GET',
      path: '/me',
      summary: 'Get the account of the signed-in person',
      answers: [me(ctx)],
      access: 'active account',
      handle: (req, res) => sendJson(res, 200, userBody(ctx.store.users, getUser(req))),
    }),
    ...profileChange(ctx, guards),
    ...(hasPasswords(ctx.settings) ? [...passwordChange(ctx, guards), ...firstPassword(ctx, guards)] : []),
    ...emailRoutes(ctx, guards),
  ]
}

function me({ store }: AuthContext): Answer {
  return { status: 200, description: 'The account.', schema: userSchema(store.users) }
}

interface ProfileBody {
  name?: string | null
  fields?: Record<string, unknown>
  /** Identifies the session, if the access token does not. */
  refresh_token?: string
}

function profileChange(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'PATCH',
    path: '/me',
    summary: 'Change the name, and the fields of the application',
    answers: [me(ctx)],
    refuses: [TooManyRequestsError],
    access: 'live session',
    limit: 'profile',
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
  /** Identifies the session, if the access token does not. */
  refresh_token?: string
}

function passwordChange(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/password-change',
    inEachDelivery: true,
    summary: 'Change the password, and revoke all other sessions',
    answers: [done],
    refuses: [UnauthorizedError, AccountInactiveError, MfaRequiredError, TooManyRequestsError, ...irreversibleRefusals(ctx)],
    access: 'live session',
    limit: 'password_change',
    body: irreversibleBody<PasswordChangeBody>(ctx, {
      current_password: passwordText(),
      new_password: passwordText().allow(''),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, body, delivery) => {
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

/** Needs a fresh session, because no password can confirm the person. */
function firstPassword(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/password/first',
    inEachDelivery: true,
    summary: 'Set the first password of an account without a password',
    answers: [done],
    refuses: [PasswordAlreadySetError, TooManyRequestsError, ...irreversibleRefusals(ctx)],
    access: 'fresh session',
    limit: 'password_change',
    checks: [factorPresented(ctx)],
    body: irreversibleBody<IrreversibleFields & { new_password: string; refresh_token?: string }>(ctx, {
      new_password: passwordText().allow(''),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, { new_password: newPassword, ...body }, delivery) => {
      const [{ sub: userId, amr }, session] = [getAuth(req), sessionOf(req)]
      const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
      const locale = localeOf(ctx, req)
      const cookie = cookieOf(ctx, req, delivery)
      keepBrowser(ctx, req, res, await setFirstPassword(ctx, { userId, newPassword, amr, session, cookie, isFinal, locale }))
      sendEmpty(res)
    },
  })
}

const userFields = {
  id: string,
  email: string,
  name: stringOrNull,
  is_active: flag,
  is_admin: flag,
  created_at: instant,
  updated_at: instant,
  last_login_at: instantOrNull,
  mfa_enabled: flag,
}

type FieldRules = Pick<UserStore, 'hostFields'>

/** @param more additional properties of this body */
export function userSchema(users: FieldRules, title = 'User', more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  const names = shownFields(users)
  const fields = { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])), required: names }
  return shape(title, { ...userFields, ...more, ...(users.hostFields && { fields }) })
}

/** Never contains private fields. */
export function userBody(users: FieldRules, user: PublicUser) {
  const { fields = {} } = user
  const own = users.hostFields && Object.fromEntries(shownFields(users).map((name) => [name, asJson(fields[name])]))
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    is_active: user.isActive,
    is_admin: user.isAdmin,
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
    mfa_enabled: user.mfaEnabled,
    ...(own && { fields: own }),
  }
}

function shownFields({ hostFields = new Map() }: FieldRules): string[] {
  return [...hostFields].flatMap(([name, rules]) => (rules.private ? [] : [name]))
}

/** A bigint becomes a text, because JSON numbers are not exact beyond 2^53. */
function asJson(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : (value ?? null)
}

/** With `passwordLogin: false`, accounts have only an email address. */
export function localRoutes(ctx: AuthContext): Route[] {
  const { localAccountsEnabled, signupEnabled, backendLinks } = ctx.settings
  if (!localAccountsEnabled) return []
  const takesPasswords = hasPasswords(ctx.settings)
  return [
    // The pages come first: the JSON routes on the same path handle every request that is no form.
    ...(backendLinks ? activationPage(ctx) : []),
    ...routesByDelivery(ctx, (line) => [
      ...(signupEnabled ? signupRoutes(ctx, line) : []),
      ...activationRoutes(ctx, line),
      ...(takesPasswords ? loginRoutes(ctx, line) : []),
    ]),
    ...(takesPasswords ? sessionLoginRoutes(ctx) : []),
    ...linkRequestRoutes(ctx),
    // Its path has a token parameter, so it comes after `/password-reset/request` and `/confirm`.
    ...(takesPasswords && backendLinks ? resetPage(ctx) : []),
  ]
}
