import type { Request } from 'express'
import { mailNotice } from '../../accounts/email-links/send-mail'
import { countingMails } from '../../accounts/email-links/signup-mails'
import type { AuthContext } from '../../context'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import type { UserRecord } from '../../store/auth-store'
import { neverEnds } from '../../store/user-records'
import { readSessionCookie } from '../cookies'
import { isAlive, readSessionToken } from '../find-session'
import type { Device, Login, LoginBrowser, NewDevice, OpenedSession } from '../login'
import { describeBrowser } from './describe-browser'
import { isOfAccount, isOfAddress, newDevice, readDevices, strangeDevice } from './device-cookie'

type DeviceOfLogin = Pick<OpenedSession, 'devices' | 'newDevice'>

/** Call it in the login's transaction, before the replaced session is revoked. Call its result with the new session's id. */
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

/** Separate, so that the result of a login does not keep the transaction and the request in memory. */
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

/** If this login replaces another account's session, its entry stays without the session, as after a logout in this browser. */
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
 * Null if the browser has a device cookie of the account, and for the first login since `unknownDevice` is not `off`, which only sets the
 * cookie. Null too if a mailed code made the device known: no notice follows. A login that creates or activates an account is such a first login. Call it inside the login's transaction (user's row locked).
 */
async function newDeviceOf(ctx: AuthContext, req: Request, user: UserRecord, login: Login): Promise<NewDevice | null> {
  if (ctx.settings.unknownDevice === 'off' || (await isFirstLogin(ctx, user)) || (await carriesDevice(ctx, req, user, login))) return null
  return login.tasks?.done.includes('device') ? null : describeBrowser(ctx, req, user)
}

/** Call it after the commit, and only if the response sets the cookie: a client without cookies would be new at every login. */
export function tellNewDevice(ctx: AuthContext, { user, locale, ...login }: NewDevice): void {
  ctx.events.emit('login.new_device', { userId: user.id })
  mailNotice(countingMails(ctx), user, 'new_device', locale, { login })
}

/** True once for an account. The row does not expire, and is inserted as used, so that a revocation of links does not affect it. */
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
 * A new password, a new address and a revoked session invalidate the cookie. A purged row of the session does not. After a reset by this
 * login, any device cookie of the address is enough, because the reset invalidates every cookie.
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
