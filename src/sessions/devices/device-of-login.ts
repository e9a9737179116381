import type { Request } from 'express'
import type { AuthContext } from '../../context'
import type { UserRecord } from '../../store/auth-store'
import { isOfAddress, newDevice, readDevices, strangeDevice } from '../device-cookie'
import { isAlive } from '../find-session'
import type { Device, Login, LoginBrowser, NewDevice, OpenedSession } from '../login'
import { readSessionCookie } from '../session-cookie'
import { readSessionToken } from '../session-token'
import { newDeviceOf } from './new-device'

type DeviceOfLogin = Pick<OpenedSession, 'devices' | 'newDevice'>

/**
 * Returns a function that adds the device of the browser to the result of a login. Call it in the login's transaction, before the login
 * revokes the session that it replaces. Call the returned function with the id of the new session.
 */
export async function deviceOfLogin(
  ctx: AuthContext,
  { req, namesSession }: LoginBrowser,
  user: UserRecord,
  login: Login,
): Promise<(sessionId: string | null) => DeviceOfLogin> {
  const others = readDevices(ctx, req).filter((device) => !isOfAddress(ctx, device, user.email))
  const staying = await keepReplaced(ctx, req, others)
  return addDevice(user, namesSession, staying, await newDeviceOf(ctx, req, user, login))
}

/** A function of its own, so that the result of a login does not keep the transaction and the request in memory. */
function addDevice(
  user: UserRecord,
  namesSession: boolean,
  others: readonly Device[],
  unknown: NewDevice | null,
): (sessionId: string | null) => DeviceOfLogin {
  return (sessionId) => ({
    devices: (ctx) => [namesSession ? newDevice(ctx, user, sessionId) : strangeDevice(ctx, user), ...others],
    ...(unknown && { newDevice: unknown }),
  })
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

export function withoutSession(devices: readonly Device[], endedIds: readonly (string | null)[]): Device[] {
  return devices.map((device) => (endedIds.includes(device.sessionId) ? { ...device, sessionId: null } : device))
}
