import type { Request } from 'express'
import { mailNotice } from '../../accounts/email-links/send-mail'
import type { AuthContext } from '../../context'
import { readAddress } from '../../core/client-key'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import { browserName } from '../../http/browser-name'
import { localeOf } from '../../http/locale'
import type { UserRecord } from '../../store/auth-store'
import { neverEnds } from '../../store/never-ends'
import { isOfAccount, isOfAddress, readDevices } from '../device-cookie'
import type { Device, Login, NewDevice } from '../login'

/**
 * Returns the notice about a login in a new browser. Returns null if the browser has a device cookie of the account, or if
 * `newDeviceNotice` is off. Also returns null for the account's first login since the setting is on, because that login only sets the
 * cookie. A login that creates or activates an account is such a first login. Call the function inside the login's transaction, which has
 * locked the user's row.
 */
export async function newDeviceOf(ctx: AuthContext, req: Request, user: UserRecord, login: Login): Promise<NewDevice | null> {
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
