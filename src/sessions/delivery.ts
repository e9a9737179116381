import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { hasPasswords, type Settings } from '../core/config/every-setting'
import { type Answer, flag, instant, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import { locationOf } from '../http/return-to'
import { sendJson, setResult } from '../http/send'
import { tellTrusted } from '../trusted-devices/trust'
import { writeTrusts } from '../trusted-devices/trust-cookie'
import { sessionOriginOf, setSessionCookie, setTokenCookies } from './cookies'
import { forgetCsrfBinding } from './csrf-binding'
import { readDevices, writeDevices } from './devices/device-cookie'
import { tellNewDevice, withoutSession } from './devices/device-of-login'
import type { AnyLoginResult, Device, LoginClient, TokenPair } from './login'
import type { ReissuedTokens } from './reissue-tokens'

/** `newDeviceNotice` records `bearer` logins too, without a cookie. @param rules.namesSession false: maybe another site's login */
export function loginClient(ctx: AuthContext, req: Request, { namesSession = true }: { namesSession?: boolean } = {}): LoginClient {
  const { tokenDelivery, newDeviceNotice } = ctx.settings
  const client: LoginClient = { gets: tokenDelivery === 'session' ? 'session' : 'tokens', origin: sessionOriginOf(ctx, req) }
  return tokenDelivery === 'bearer' && !newDeviceNotice ? client : { ...client, browser: { req, namesSession } }
}

export function loginClientWith(ctx: AuthContext, req: Request, gets: 'tokens' | 'session'): LoginClient {
  return { gets, origin: sessionOriginOf(ctx, req), browser: { req, namesSession: true } }
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
export function loginSchema(settings: Settings): JsonSchema {
  return withFields(loginFields, { ...stepMethods, ...optionalFields(settings) })
}

function withFields(schema: JsonSchema, fields: object): JsonSchema {
  return { ...schema, properties: { ...(schema['properties'] as object), ...fields } }
}

export function loginAnswer({ settings }: Pick<AuthContext, 'settings'>, delivery: Delivery): Answer {
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
        ? { oneOf: [withFields(deliveredSession, optionalFields(settings)), deliveredChallenge] }
        : loginSchema(settings),
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
  sendJson(res, 200, loginBody(result, delivery))
}

export function sessionLoginAnswer({ settings }: Pick<AuthContext, 'settings'>): Answer {
  return {
    status: 200,
    description: 'The session, in its cookie. If a second factor is active: the data of the second-factor step, and no cookie yet.',
    schema: { oneOf: [withFields(sessionFields, { ...trustedField(settings), return_to: string }), loginSchema(settings)] },
  }
}

function sendServerSession(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  setCookiesOfLogin(ctx, res, result)
  const { userId: user_id } = result
  const body =
    'sessionToken' in result
      ? { user_id, expires_at: result.expiresAt.toISOString(), ...returnToOf(result), ...trustedOf(result) }
      : loginBody(result, 'bearer')
  sendJson(res, 200, body)
}

/** If the refresh token did not change, `refresh_token` is null and its cookie stays. */
export function sendRefreshed(ctx: AuthContext, res: Response, pair: TokenPair | ReissuedTokens, delivery: Delivery): void {
  if (delivery !== 'bearer') setTokenCookies(ctx, res, pair)
  sendJson(res, 200, loginBody(pair, delivery))
}

function setCookiesOfLogin(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  if (result.kind !== 'session') return
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

/** For a script that finishes the login and then redirects the browser. The value never contains a secret. */
function returnToOf({ returnTo }: { returnTo?: string }): { return_to?: string } {
  return returnTo === undefined ? {} : { return_to: locationOf(returnTo) }
}
