import type { Request } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../../context'
import { text } from '../../http/validate'
import type { UserRecord } from '../../store/auth-store'
import { isOfAccount, isOfAddress, readDevices } from '../device-cookie'
import type { Device } from '../login'
import { readQuietly } from '../read-quietly'
import { readSessionToken } from '../session-token'
import { isStillTrusted, readStatelessToken } from '../stateless-refresh-token'

/**
 * A client in which the account's owner finished a login before. The client has separate rate limits, which other clients cannot use up.
 */
export interface KnownDevice {
  /** The id of the device. All requests of a device have the same id. */
  readonly id: string
}

/** The data of a request about its device. The data is not verified yet. */
export interface PresentedDevice {
  readonly devices: readonly Device[]
  readonly previousToken: string | undefined
}

/** The body field for an earlier refresh token, for clients without cookies. */
export const previousToken = { previous_token: text(4096).optional() } as const satisfies Joi.SchemaMap

export function presentedDevice(ctx: AuthContext, req: Request, body: { previous_token?: string | undefined } = {}): PresentedDevice {
  return { devices: readDevices(ctx, req), previousToken: body.previous_token }
}

/** Makes a `PresentedDevice` for a call of `auth.service`. Such a call has no request and no device cookie, so only `previousToken` is set. */
export function tokenPresented({ previousToken }: { previousToken?: string | undefined }): PresentedDevice {
  return { devices: [], previousToken }
}

/**
 * Returns the device of a request if it is a known device of the account with this address. The function checks the device cookie, then a
 * refresh token of the account. The refresh token may be expired or used. If the session was revoked or its row is gone, the cookie and the
 * token do not count.
 *
 * The function queries the database only for a device of this address, or for a token that we made. Therefore the time reveals nothing
 * about other accounts.
 * @param email in lower case
 */
export async function findKnownDevice(ctx: AuthContext, email: string, presented: PresentedDevice): Promise<KnownDevice | null> {
  const device = presented.devices.find((device) => isOfAddress(ctx, device, email))
  if (device && (await isKnown(ctx, email, device))) return { id: device.id }
  return presented.previousToken === undefined ? null : findByToken(ctx, email, presented.previousToken)
}

async function isKnown(ctx: AuthContext, email: string, device: Device): Promise<boolean> {
  if (device.sessionId === null) {
    const user = await ctx.store.users.findByEmail(email)
    return user !== null && isOfAccount(ctx, device, user)
  }
  const found = await ctx.store.sessions?.find({ id: device.sessionId })
  return found?.session.revokedAt === null && isOfAccount(ctx, device, found.user)
}

async function findByToken(ctx: AuthContext, email: string, token: string): Promise<KnownDevice | null> {
  const { sessions } = ctx.store
  if (!sessions) return findByStatelessToken(ctx, email, token)
  const named = readSessionToken(ctx.keys['session-token'], 'tokens', token)
  const found = named && (await sessions.find({ id: named.id }))
  const isKnown = found?.session.revokedAt === null && found.session.kind === 'tokens' && found.user.email === email
  return isKnown ? { id: found.session.id } : null
}

/**
 * The time at which a stateless token is verified. The time is early, so that an expired token counts too. It is not 0, because
 * jsonwebtoken reads 0 as the current time.
 */
const longAgo = new Date(1_000)

/**
 * Finds a device by a stateless token. Every refresh keeps the absolute end of the login. So the user and this end identify the device.
 */
async function findByStatelessToken(ctx: AuthContext, email: string, token: string): Promise<KnownDevice | null> {
  const session = readQuietly(() => readStatelessToken(ctx, token, longAgo))
  const user = session && (await ctx.store.users.find(session.userId))
  const isKnown = user && isStillTrusted(ctx, session, user) && user.email === email
  return isKnown ? { id: `${user.id} ${session.end}` } : null
}

/**
 * Returns true if the request's device cookie is of this account, for a store without sessions. In that case the cookie names no session.
 */
export function isDeviceOfAccount(ctx: AuthContext, req: Request, user: UserRecord): boolean {
  return readDevices(ctx, req).some((device) => isOfAccount(ctx, device, user))
}
