import { isIP } from 'node:net'
import type { Request } from 'express'
import type { AuthContext } from '../context'
import { browserName } from '../http/browser-name'
import { localeOf } from '../http/locale'
import { mailNotice } from '../mailbox/send-mail'
import { hashOpaqueToken, newOpaqueToken } from '../opaque-token'
import type { Device, Login, NewDevice } from '../session/finish-login'
import type { UserRecord } from '../store/auth-store'
import { isOfAccount, isOfAddress, readDevices } from './device-cookie'

const centuryMs = 36_525 * 86_400_000

/**
 * Returns what to tell the owner of a login in a browser that carries no device cookie of the account. Null where it carries one; where
 * `newDeviceNotice` is off; and at the first login of the account since it is on, which only sets the cookie: the login that makes or
 * activates an account is such a one. Inside the login's transaction, which has locked the user's row.
 */
export async function newDeviceOf(ctx: AuthContext, req: Request, user: UserRecord, login: Login): Promise<NewDevice | null> {
  if (!ctx.settings.newDeviceNotice || (await isFirstLogin(ctx, user)) || (await carriesDevice(ctx, req, user, login))) return null
  const browser = browserName(req.headers['user-agent'] ?? '')
  return { user, locale: localeOf(ctx, req), at: ctx.now(), browser, ip: addressOf(req) }
}

/** Behind a proxy that is trusted too much a client may write anything there: then null. An IPv4 address is shown as such. */
function addressOf({ ip = '' }: Request): string | null {
  return isIP(ip) === 0 ? null : ip.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** After the commit, and only where the answer sets the cookie: a client that keeps none would be new each time. */
export function tellNewDevice(ctx: AuthContext, { user, locale, ...login }: NewDevice): void {
  ctx.events.emit('login.new_device', { userId: user.id })
  mailNotice(ctx, user, 'new_device', locale, { login })
}

/** Notes it, by a row that never expires. It is born used, so that nothing that ends links and codes ends it. */
async function isFirstLogin(ctx: AuthContext, { id }: UserRecord): Promise<boolean> {
  const { userTokens } = ctx.store
  const now = ctx.now()
  if (await userTokens.wasConsumed(id, 'KNOWN_DEVICES')) return false
  await userTokens.insert({
    userId: id,
    tokenHash: hashOpaqueToken(newOpaqueToken()), // opens nothing: nobody has the token
    purpose: 'KNOWN_DEVICES',
    payload: null,
    expiresAt: new Date(now.getTime() + centuryMs),
    usedAt: now,
    createdAt: now,
  })
  return true
}

/** A new password or address ends a device, and so does the end of its session from elsewhere. Purged sessions are not held against it. */
async function carriesDevice(ctx: AuthContext, req: Request, user: UserRecord, { isReset }: Login): Promise<boolean> {
  const device = readDevices(ctx, req).find((one) => isOfAddress(ctx, one, user.email))
  if (!device) return false
  return isReset === true || (isOfAccount(ctx, device, user) && !(await isRevoked(ctx, device)))
}

async function isRevoked(ctx: AuthContext, { sessionId }: Device): Promise<boolean> {
  const found = sessionId === null ? null : await ctx.store.sessions?.find({ id: sessionId })
  return found ? found.session.revokedAt !== null : false
}
