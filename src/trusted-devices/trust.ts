import { createHmac, type KeyObject } from 'node:crypto'
import type { Request } from 'express'
import { mailNotice } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import { UnauthorizedError } from '../core/errors'
import { isUnderAny } from '../core/keys'
import { hashOpaqueToken } from '../core/opaque-token'
import { describeBrowser } from '../sessions/devices/describe-browser'
import { isOfUser } from '../sessions/devices/device-cookie'
import { after } from '../sessions/find-session'
import type { Login, LoginBrowser, NewTrust, OpenedSession } from '../sessions/login'
import type { TrustedDeviceRecord, UserRecord } from '../store/auth-store'
import { newTrustEntry, readTrusts, trustedDevicesOf, trustOfUser } from './trust-cookie'

/**
 * The trust that stands for the second factor of this login. Only a login by password alone has one. If the browser sent no cookie of the
 * account, this makes no query. Call it in the login's transaction, which has locked the user's row.
 */
export async function findTrust(
  ctx: AuthContext,
  browser: LoginBrowser | undefined,
  user: UserRecord,
  { amr }: Login,
): Promise<TrustedDeviceRecord | null> {
  const trustedDevices = trustedDevicesOf(ctx)
  const isByPassword = amr.length === 1 && amr[0] === 'pwd'
  if (!trustedDevices || !browser || !isByPassword || user.passwordExpiredAt) return null
  const entry = trustOfUser(ctx, browser.req, user.id)
  const device = entry && (await trustedDevices.find(hashOpaqueToken(entry.token)))
  return device && isTrust(ctx, device, user) ? device : null
}

function isTrust(ctx: AuthContext, { userId, digest, endsAt }: TrustedDeviceRecord, user: UserRecord): boolean {
  return userId === user.id && endsAt > ctx.now() && isUnderAny(ctx.keys.device, (key) => trustDigest(ctx, key, user) === digest)
}

/**
 * Records the use of a trust, or trusts the browser if the person asked for it. Call it in the login's transaction, after the new session.
 * @throws UnauthorizedError if the trust was deleted meanwhile
 */
export async function keepTrust(
  ctx: AuthContext,
  browser: LoginBrowser | undefined,
  user: UserRecord,
  { trust, trustsDevice }: Login,
  sessionId: string | null,
): Promise<Pick<OpenedSession, 'deviceTrusted' | 'newTrust'>> {
  const trustedDevices = trustedDevicesOf(ctx)
  if (!trustedDevices || sessionId === null) return {}
  if (trust && !(await trustedDevices.recordUse(trust.id, user.id, { sessionId, lastUsedAt: ctx.now() }))) throw new UnauthorizedError()
  if (trustsDevice === undefined) return {}
  if (!trustsDevice || !browser) return { deviceTrusted: false }
  return { deviceTrusted: true, newTrust: await trustBrowser(ctx, browser.req, user, sessionId) }
}

/** Replaces an older trust of the account in this browser. */
async function trustBrowser(ctx: AuthContext, req: Request, user: UserRecord, sessionId: string): Promise<NewTrust> {
  const described = describeBrowser(ctx, req, user)
  const entries = readTrusts(ctx, req)
  const old = entries.find((entry) => isOfUser(ctx, entry, user.id))
  if (old) await trustedDevicesOf(ctx)?.deleteForUser(user.id, { tokenHash: hashOpaqueToken(old.token) })
  const endsAt = after(described.at, ctx.settings.trustedDeviceDays * 86_400)
  const entry = newTrustEntry(ctx, user.id, endsAt)
  // A later login compares the stored row, whose times can have whole seconds.
  const stored = (await ctx.store.users.find(user.id)) ?? user
  await trustedDevicesOf(ctx)?.insert({
    userId: user.id,
    sessionId,
    tokenHash: hashOpaqueToken(entry.token),
    digest: trustDigest(ctx, ctx.keys.device[0], stored),
    name: described.browser,
    createdAt: described.at,
    lastUsedAt: null,
    endsAt,
  })
  return { ...described, entries: [entry, ...entries.filter((one) => one !== old)] }
}

/** The login failed after the commit, so no browser gets the value. */
export async function forgetNewTrust(ctx: AuthContext, { user, entries: [entry] }: NewTrust): Promise<void> {
  if (entry) await trustedDevicesOf(ctx)?.deleteForUser(user.id, { tokenHash: hashOpaqueToken(entry.token) })
}

/** Call it after the commit, and only if the response sets the cookie. */
export function tellTrusted(ctx: AuthContext, { user, locale, at, browser, ip }: NewTrust): void {
  ctx.events.emit('device.trusted', { userId: user.id })
  mailNotice(ctx, user, 'device_trusted', locale, { login: { at, browser, ip } })
}

/** A changed account matches no digest of before. Without a column for the password's time, the hash counts. An HMAC, because it covers the hash. */
function trustDigest({ store }: Pick<AuthContext, 'store'>, key: KeyObject, user: UserRecord): string {
  const password = store.users.fields.has('passwordSetAt') ? (user.passwordSetAt?.getTime() ?? null) : user.hashedPassword
  const { id, email, totpEnabledAt, activatedAt, isActive } = user
  const parts = ['trust', id, email, password, totpEnabledAt?.getTime() ?? null, activatedAt?.getTime() ?? null, isActive]
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url')
}
