import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { type Delivery, sendLoginTokens, sendServerSession, setCookiesOfLogin } from '../delivery'
import { readDevices, writeDevices } from '../device-cookie'
import type { AnyLoginResult, Device, LoginClient } from '../login'
import { sessionOriginOf } from '../session-cookie'
import { withoutSession } from './device-of-login'
import { tellNewDevice } from './new-device'

/**
 * Returns the client of a request, which gets what `tokenDelivery` names. In delivery `bearer` no response sets the device cookie, so the
 * result has no device. With `newDeviceNotice` the login still records that the account has logged in.
 * @param rules.namesSession false: another site may have caused the login. Default true
 */
export function loginClient(ctx: AuthContext, req: Request, { namesSession = true }: { namesSession?: boolean } = {}): LoginClient {
  const { tokenDelivery, newDeviceNotice } = ctx.settings
  const client: LoginClient = { gets: tokenDelivery === 'session' ? 'session' : 'tokens', origin: sessionOriginOf(ctx, req) }
  return tokenDelivery === 'bearer' && !newDeviceNotice ? client : { ...client, browser: { req, namesSession } }
}

/** Returns the client of a request to a route that gives a session cookie, or tokens, in every `tokenDelivery`. */
export function loginClientWith(ctx: AuthContext, req: Request, gets: 'tokens' | 'session'): LoginClient {
  return { gets, origin: sessionOriginOf(ctx, req), browser: { req, namesSession: true } }
}

/** Sends the result of a login. A challenge sets no cookie. */
export function sendLogin(ctx: AuthContext, res: Response, result: AnyLoginResult, delivery: Delivery): void {
  if (delivery !== 'bearer') rememberDevice(ctx, res, result)
  sendLoginTokens(ctx, res, result, delivery)
}

export function setLoginCookies(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  rememberDevice(ctx, res, result)
  setCookiesOfLogin(ctx, res, result)
}

/** Sends the result of a login with a server-side session. */
export function sendSessionLogin(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  rememberDevice(ctx, res, result)
  sendServerSession(ctx, res, result)
}

/** Keeps the device known after a logout of only this browser's sessions. The device stays in the cookie without the session. */
export function keepDeviceAfterLogout(ctx: AuthContext, req: Request, res: Response, endedIds: readonly string[]): void {
  const devices = readDevices(ctx, req)
  const isEnded = ({ sessionId }: Device) => sessionId !== null && endedIds.includes(sessionId)
  if (devices.some(isEnded)) writeDevices(ctx, res, withoutSession(devices, endedIds))
}

function rememberDevice(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  if (result.kind !== 'session' || !result.devices) return
  writeDevices(ctx, res, result.devices(ctx))
  if (result.newDevice) tellNewDevice(ctx, result.newDevice)
}
