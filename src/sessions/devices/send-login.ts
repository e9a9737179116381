import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import type { UserRecord } from '../../store/auth-store'
import { type Delivery, sendLoginTokens as send, sendServerSession as sendSession, setCookiesOfLogin as setCookies } from '../delivery'
import { isOfAddress, newDevice, readDevices, strangeDevice, writeDevices } from '../device-cookie'
import { isAlive } from '../find-session'
import type { Device, LoginChallenge, OpenedSession, OpenSession } from '../finish-login'
import { type AnyLoginResult, type AnySession, openDelivered, type SessionLoginResult } from '../open-session'
import { readSessionCookie, sessionOriginOf } from '../session-cookie'
import { readSessionToken } from '../session-token'
import { newDeviceOf, tellNewDevice } from './new-device'

/**
 * Returns the function for `finishLogin` that opens the kind of session of `tokenDelivery`, on the device of the request. In delivery
 * `bearer` no response sets the device cookie, so the result has no device. With `newDeviceNotice` the login still records that the account
 * has logged in.
 * @param rules.namesSession false: another site may have caused the login, so the entry in the device cookie proves nothing. Default true
 */
export function openFor(ctx: AuthContext, req: Request, rules: { namesSession?: boolean } = {}): OpenSession<AnySession> {
  const { tokenDelivery, newDeviceNotice } = ctx.settings
  const open = openDelivered(ctx, sessionOriginOf(ctx, req))
  return tokenDelivery === 'bearer' && !newDeviceNotice ? open : openOnDevice(req, open, rules)
}

/** Wraps a function for `finishLogin`, so that the result also has the device of the browser. The functions below set the device cookie. */
export function openOnDevice<Session extends AnySession>(
  req: Request,
  open: OpenSession<Session>,
  { namesSession = true }: { namesSession?: boolean } = {},
): OpenSession<Session> {
  const remembering: OpenSession<Session> = async (ctx, user, login) => {
    const others = readDevices(ctx, req).filter((device) => !isOfAddress(ctx, device, user.email))
    const kept = await keepReplaced(ctx, req, others)
    const unknown = await newDeviceOf(ctx, req, user, login) // before this login revokes the session that it replaces
    const session = await open(ctx, user, login)
    return { ...session, devices: devicesWith(user, namesSession ? session : null, kept), ...(unknown && { newDevice: unknown }) }
  }
  return Object.assign(remembering, { takesClaims: open.takesClaims })
}

/**
 * Returns the function `devices` of a session. A function of its own, so that the result of a login does not keep the transaction and the
 * request in memory.
 */
function devicesWith(user: UserRecord, session: AnySession | null, others: readonly Device[]): OpenedSession['devices'] {
  return (ctx) => {
    const entry = session ? newDevice(ctx, user, sessionIdOf(ctx, session)) : strangeDevice(ctx, user)
    return [entry, ...others]
  }
}

/** Sends the result of a login. A challenge sets no cookie. */
export function sendLogin(ctx: AuthContext, res: Response, result: AnyLoginResult, delivery: Delivery): void {
  if (delivery !== 'bearer') rememberDevice(ctx, res, result)
  send(ctx, res, result, delivery)
}

export function setLoginCookies(ctx: AuthContext, res: Response, result: AnyLoginResult): void {
  rememberDevice(ctx, res, result)
  setCookies(ctx, res, result)
}

/** Sends the result of a login with a server-side session. */
export function sendSessionLogin(ctx: AuthContext, res: Response, result: SessionLoginResult): void {
  rememberDevice(ctx, res, result)
  sendSession(ctx, res, result)
}

/** Keeps the device known after a logout of only this browser's sessions. The device stays in the cookie without the session. */
export function keepDeviceAfterLogout(ctx: AuthContext, req: Request, res: Response, endedIds: readonly string[]): void {
  const devices = readDevices(ctx, req)
  const isEnded = ({ sessionId }: Device) => sessionId !== null && endedIds.includes(sessionId)
  if (devices.some(isEnded)) writeDevices(ctx, res, withoutSession(devices, endedIds))
}

/**
 * Returns the entries of the device cookie. If this login replaces the live session of another account, the entry of that account stays,
 * but no longer names a session. So the browser stays a known device of that account, as after a logout in this browser.
 */
async function keepReplaced(ctx: AuthContext, req: Request, devices: readonly Device[]): Promise<readonly Device[]> {
  const cookie = devices.length === 0 ? null : readSessionCookie(ctx, req)
  const replaced = cookie === null ? null : readSessionToken(ctx.keys['session-token'], 'session', cookie)
  if (!replaced || !devices.some(({ sessionId }) => sessionId === replaced.id)) return devices
  const found = await ctx.store.sessions?.find({ id: replaced.id })
  return found && isAlive(found.session, ctx.now()) ? withoutSession(devices, [replaced.id]) : devices
}

function withoutSession(devices: readonly Device[], endedIds: readonly (string | null)[]): Device[] {
  return devices.map((device) => (endedIds.includes(device.sessionId) ? { ...device, sessionId: null } : device))
}

function rememberDevice(ctx: AuthContext, res: Response, result: OpenedSession | LoginChallenge): void {
  if (result.kind !== 'session' || !result.devices) return
  writeDevices(ctx, res, result.devices(ctx))
  if (result.newDevice) tellNewDevice(ctx, result.newDevice)
}

function sessionIdOf(ctx: AuthContext, session: AnySession): string | null {
  if ('sessionId' in session) return session.sessionId
  return readSessionToken(ctx.keys['session-token'], 'tokens', session.refreshToken)?.id ?? null
}
