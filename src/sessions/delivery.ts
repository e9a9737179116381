import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { hasPasswords, type Settings } from '../core/config/every-setting'
import { type Answer, flag, instant, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import { localeOf } from '../http/locale'
import { locationOf } from '../http/return-to'
import { sendJson, setResult } from '../http/send'
import { tellTrusted } from '../trusted-devices/trust'
import { writeTrusts } from '../trusted-devices/trust-cookie'
import { endTasks, keepTasks, sessionOriginOf, setSessionCookie, setTokenCookies } from './cookies'
import { forgetCsrfBinding } from './csrf-binding'
import { readDevices, writeDevices } from './devices/device-cookie'
import { tellNewDevice, withoutSession } from './devices/device-of-login'
import type { AnyLoginResult, Device, LoginClient, LoginOwesTasks, TokenPair } from './login'
import type { ReissuedTokens } from './reissue-tokens'

/** @param rules.namesSession false: maybe another site's login */
export function loginClient(ctx: AuthContext, req: Request, { namesSession = true }: { namesSession?: boolean } = {}): LoginClient {
  const { tokenDelivery } = ctx.settings
  const client = {
    gets: tokenDelivery === 'session' ? 'session' : 'tokens',
    origin: sessionOriginOf(ctx, req),
    ...localeOfClient(ctx, req),
  } as const
  return tokenDelivery === 'bearer' ? client : { ...client, browser: { req, namesSession } }
}

export function loginClientWith(ctx: AuthContext, req: Request, gets: 'tokens' | 'session'): LoginClient {
  return { gets, origin: sessionOriginOf(ctx, req), browser: { req, namesSession: true }, ...localeOfClient(ctx, req) }
}

function localeOfClient(ctx: AuthContext, req: Request): Pick<LoginClient, 'locale'> {
  return ctx.loginTasks === null ? {} : { locale: localeOf(ctx, req) }
}

export function sendLogin(ctx: AuthContext, res: Response, result: AnyLoginResult, delivery: Delivery): void {
  if (delivery !== 'bearer') rememberDevice(ctx, res, result)
  sendLoginTokens(ctx, res, result, delivery)
}

export function setLoginCookies(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  rememberDevice(ctx, res, result)
  setCookiesOfLogin(ctx, res, result)
}

export function sendSessionLogin(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  rememberDevice(ctx, res, result)
  sendServerSession(ctx, res, result)
}

/** After a logout of only this browser's sessions, the device stays in the cookie without the session. */
export function keepDeviceAfterLogout(ctx: AuthContext, req: Request, res: Response, endedIds: readonly string[]): void {
  const devices = readDevices(ctx, req)
  const isEnded = ({ sessionId }: Device) => sessionId !== null && endedIds.includes(sessionId)
  if (devices.some(isEnded)) writeDevices(ctx, res, withoutSession(devices, endedIds))
}

function rememberDevice(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  if (result.kind !== 'session' || !result.devices) return
  writeDevices(ctx, res, result.devices(ctx))
  if (result.newDevice) tellNewDevice(ctx, result.newDevice)
  if (!result.newTrust) return
  writeTrusts(ctx, res, result.newTrust.entries)
  tellTrusted(ctx, result.newTrust)
}

const loginFields = shape('Login', {
  user_id: string,
  access_token: stringOrNull,
  refresh_token: stringOrNull,
  mfa_required: flag,
  mfa_token: stringOrNull,
})

const sessionFields = shape('SessionLogin', { user_id: string, expires_at: instant })

/** Present in a challenge if passkeys are on. */
const stepMethods = { mfa_methods: { type: 'array', items: { enum: ['otp', 'passkey'] } } }
/**
 * `password_required`: true if the first verification of the address removed the password, else absent. `return_to`: present if the login
 * started with one and this response opens the session. `device_trusted`: present after a second-factor step that can trust the browser.
 */
const optionalFields = (settings: Settings) => ({
  ...trustedField(settings),
  ...(hasPasswords(settings) && { password_required: { const: true } }),
  return_to: string,
})
const trustedField = ({ trustedDeviceDays }: Settings) => (trustedDeviceDays > 0 ? { device_trusted: flag } : {})
const deliveredSession = shape('DeliveredSession', { user_id: string, expires_at: instant, mfa_required: { const: false } })
const deliveredChallenge = withFields(
  shape('DeliveredChallenge', { user_id: string, mfa_required: { const: true }, mfa_token: string }),
  stepMethods,
)
export function loginSchema({ settings, loginTasks }: LoginDescription): JsonSchema {
  return withFields(withTasks(loginFields, loginTasks), { ...stepMethods, ...optionalFields(settings) })
}

type LoginDescription = Pick<AuthContext, 'settings' | 'loginTasks'>

export const taskFields = { tasks_required: { type: 'array', items: string }, task_token: stringOrNull }

/** Both members are in every response if a login can owe tasks, and else in none. */
export function withTasks(schema: JsonSchema, tasks: AuthContext['loginTasks']): JsonSchema {
  if (tasks === null) return schema
  const required = [...(schema['required'] as string[]), ...Object.keys(taskFields)]
  return { ...withFields(schema, taskFields), title: `${schema['title']}OrTasks`, required }
}

/** A login that owes tasks, where a session has an end. */
const owingLogin = shape('LoginOwesTasks', { user_id: string, expires_at: { type: 'null' }, mfa_required: { const: false }, ...taskFields })
const owing = ({ loginTasks }: LoginDescription): JsonSchema[] => (loginTasks === null ? [] : [owingLogin])

function withFields(schema: JsonSchema, fields: object): JsonSchema {
  return { ...schema, properties: { ...(schema['properties'] as object), ...fields } }
}

export function loginAnswer(ctx: LoginDescription, delivery: Delivery): Answer {
  const { settings, loginTasks } = ctx
  const session = {
    bearer: 'The session’s two tokens',
    cookie: 'The session, in two cookies. The tokens in the body are null',
    both: 'The session’s two tokens, in the body and in two cookies',
    session: 'The session, in its cookie',
  }[delivery]
  return {
    status: 200,
    description: `${session}. If a second factor is active: the data of the second-factor step, and no session yet.`,
    schema:
      delivery === 'session'
        ? {
            oneOf: [
              withFields(withTasks(deliveredSession, loginTasks), optionalFields(settings)),
              withTasks(deliveredChallenge, loginTasks),
              ...owing(ctx),
            ],
          }
        : loginSchema(ctx),
  }
}

/**
 * `bearer`: in the body. `cookie`: in cookies, with null in the body. `both`: in both; as a setting, each route uses one of these three.
 * `session`: no tokens, but a server-side session in a cookie.
 */
export type Delivery = Settings['tokenDelivery']

export function setsTokenCookies(delivery: Delivery): boolean {
  return delivery === 'cookie' || delivery === 'both'
}

/** A challenge is always in the body, and sets no cookie. */
function sendLoginTokens(ctx: AuthContext, res: Response, result: AnyLoginResult, delivery: Delivery): void {
  if (delivery !== 'bearer') setCookiesOfLogin(ctx, res, result)
  setResult(res, result)
  sendJson(res, 200, { ...loginBody(result, delivery), ...taskMembers(ctx, result) })
}

export function sessionLoginAnswer(ctx: LoginDescription): Answer {
  return {
    status: 200,
    description: 'The session, in its cookie. If a second factor is active: the data of the second-factor step, and no cookie yet.',
    schema: {
      oneOf: [
        withFields(withTasks(sessionFields, ctx.loginTasks), { ...trustedField(ctx.settings), return_to: string }),
        loginSchema(ctx),
        ...owing(ctx),
      ],
    },
  }
}

function sendServerSession(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  setCookiesOfLogin(ctx, res, result)
  const { userId: user_id } = result
  const body =
    'sessionToken' in result
      ? { user_id, expires_at: result.expiresAt.toISOString(), ...returnToOf(result), ...trustedOf(result) }
      : loginBody(result, result.kind === 'tasks' ? 'session' : 'bearer')
  setResult(res, result)
  sendJson(res, 200, { ...body, ...taskMembers(ctx, result) })
}

/** If the refresh token did not change, `refresh_token` is null and its cookie stays. */
export function sendRefreshed(ctx: AuthContext, res: Response, pair: TokenPair | ReissuedTokens, delivery: Delivery): void {
  if (delivery !== 'bearer') setTokenCookies(ctx, res, pair)
  sendJson(res, 200, loginBody(pair, delivery))
}

/** Present in every response of a login if a login can owe tasks, so that a client need not ask whether they are there. */
export function taskMembers({ loginTasks }: Pick<AuthContext, 'loginTasks'>, result: AnyLoginResult | null): object {
  if (loginTasks === null) return {}
  return result?.kind === 'tasks'
    ? { tasks_required: result.tasks, task_token: result.taskToken }
    : { tasks_required: [], task_token: null }
}

function setCookiesOfLogin(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  if (result.kind === 'tasks') keepTasks(ctx, res, { taskToken: result.taskToken, returnTo: null })
  if (result.kind !== 'session') return
  endTasks(ctx, res)
  forgetCsrfBinding(res, ctx.settings.cookieSamesite)
  if ('sessionToken' in result) setSessionCookie(ctx, res, result)
  else if ('accessToken' in result) setTokenCookies(ctx, res, result)
}

/** The token of a server-side session is only in the cookie, never in the body. */
export function loginBody(result: AnyLoginResult | ReissuedTokens, delivery: Delivery): object {
  const { userId: user_id } = result
  if (result.kind === 'challenge') {
    const { mfaMethods: mfa_methods } = result
    const noTokens = delivery === 'session' ? {} : { access_token: null, refresh_token: null }
    return { user_id, ...noTokens, mfa_required: true, mfa_token: result.mfaToken, ...(mfa_methods && { mfa_methods }) }
  }
  if (result.kind === 'tasks') return bodyOfTasks(result, delivery)
  const { passwordRequired } = result
  const told = { ...(passwordRequired && { password_required: true }), ...returnToOf(result), ...trustedOf(result) }
  if ('sessionToken' in result) return { user_id, expires_at: result.expiresAt.toISOString(), mfa_required: false, ...told }
  const isInBody = delivery !== 'cookie' && 'accessToken' in result
  const { accessToken, refreshToken } = isInBody ? result : { accessToken: null, refreshToken: null }
  return { user_id, access_token: accessToken, refresh_token: refreshToken, mfa_required: false, mfa_token: null, ...told }
}

/** Only after a second-factor step that can trust the browser. */
function trustedOf({ deviceTrusted }: { deviceTrusted?: boolean }): { device_trusted?: boolean } {
  return deviceTrusted === undefined ? {} : { device_trusted: deviceTrusted }
}

function bodyOfTasks({ userId: user_id }: LoginOwesTasks, delivery: Delivery): object {
  if (delivery === 'session') return { user_id, expires_at: null, mfa_required: false }
  return { user_id, access_token: null, refresh_token: null, mfa_required: false, mfa_token: null }
}

/** For a script that finishes the login and then redirects the browser. The value never contains a secret. */
function returnToOf({ returnTo }: { returnTo?: string }): { return_to?: string } {
  return returnTo === undefined ? {} : { return_to: locationOf(returnTo) }
}
