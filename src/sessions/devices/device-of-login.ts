import type { Request } from 'express'
import { mailNotice } from '../../accounts/email-links/send-mail'
import type { AuthContext } from '../../context'
import { readAddress } from '../../core/client-key'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import { browserName, localeOf } from '../../http/locale'
import type { UserRecord } from '../../store/auth-store'
import { neverEnds } from '../../store/user-records'
import { readSessionCookie } from '../cookies'
import { isAlive, readSessionToken } from '../find-session'
import type { Device, Login, LoginBrowser, NewDevice, OpenedSession } from '../login'
import { isOfAccount, isOfAddress, newDevice, readDevices, strangeDevice } from './device-cookie'

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

/**
 * Returns the notice about a login in a new browser. Returns null if the browser has a device cookie of the account, or if
 * `newDeviceNotice` is off. Also returns null for the account's first login since the setting is on, because that login only sets the
 * cookie. A login that creates or activates an account is such a first login. Call the function inside the login's transaction, which has
 * locked the user's row.
 */
async function newDeviceOf(ctx: AuthContext, req: Request, user: UserRecord, login: Login): Promise<NewDevice | null> {
  if (!ctx.settings.newDeviceNotice || (await isFirstLogin(ctx, user)) || (await carriesDevice(ctx, req, user, login))) return null
  const browser = browserName(req.headers['user-agent'] ?? '')
  return { user, locale: localeOf(ctx, req), at: ctx.now(), browser, ip: readAddress(req.ip) }
}

/**
 * Emits the event and mails the notice. Call the function after the commit. Call it only if the response sets the cookie, because a client
 * without cookies would be a new device at every login.
 */
export function tellNewDevice(ctx: AuthContext, { user, locale, ...login }: NewDevice): void {
  ctx.events.emit('login.new_device', { userId: user.id })
  mailNotice(ctx, user, 'new_device', locale, { login })
}

/**
 * Returns true at the first call for an account, and records the call in a row that does not expire. The row is inserted as used, so that a
 * revocation of links and codes does not affect the row.
 */
async function isFirstLogin(ctx: AuthContext, { id }: UserRecord): Promise<boolean> {
  const { userTokens } = ctx.store
  const now = ctx.now()
  if (await userTokens.wasConsumed(id, 'KNOWN_DEVICES')) return false
  await userTokens.insert({
    userId: id,
    tokenHash: hashOpaqueToken(newOpaqueToken()), // nobody has this token
    purpose: 'KNOWN_DEVICES',
    payload: null,
    expiresAt: neverEnds(now),
    usedAt: now,
    createdAt: now,
  })
  return true
}

/**
 * Returns true if the browser has a valid device cookie of the account. A new password, a new address and a revoked session invalidate the
 * cookie. If the session's row was purged, the cookie stays valid.
 * Exception: if this login has just reset the password, any device cookie of the address is enough, because the reset itself invalidates
 * every cookie.
 */
async function carriesDevice(ctx: AuthContext, req: Request, user: UserRecord, { isReset }: Login): Promise<boolean> {
  const device = readDevices(ctx, req).find((one) => isOfAddress(ctx, one, user.email))
  if (!device) return false
  return isReset === true || (isOfAccount(ctx, device, user) && !(await isRevoked(ctx, device)))
}

async function isRevoked(ctx: AuthContext, { sessionId }: Device): Promise<boolean> {
  const found = sessionId === null ? null : await ctx.store.sessions?.find({ id: sessionId })
  return found ? found.session.revokedAt !== null : false
}
