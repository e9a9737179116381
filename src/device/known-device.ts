import type { Request } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../context'
import { text } from '../http/validate'
import type { Device } from '../session/finish-login'
import { readQuietly } from '../session/read-quietly'
import { readSessionToken } from '../session/session-token'
import { isStillTrusted, readStatelessToken } from '../session/stateless-refresh-token'
import type { UserRecord } from '../store/auth-store'
import { isOfAccount, isOfAddress, readDevices } from './device-cookie'

/** A client in which the owner of the account finished a login before. It has rate limits of its own, which other clients cannot use up. */
export interface KnownDevice {
  /** Stays the same for this device, whatever it asks. */
  readonly id: string
}

/** What a request shows of its device. Nothing of it is believed yet. */
export interface ShownDevice {
  readonly devices: readonly Device[]
  readonly previousToken: string | undefined
}

/** In a body: a refresh token that the client had, for clients without cookies. */
export const previousToken = { previous_token: text(4096).optional() } as const satisfies Joi.SchemaMap

export function shownDevice(ctx: AuthContext, req: Request, body: { previous_token?: string | undefined } = {}): ShownDevice {
  return { devices: readDevices(ctx, req), previousToken: body.previous_token }
}

/** Without HTTP. */
export function tokenShown({ previousToken }: { previousToken?: string | undefined }): ShownDevice {
  return { devices: [], previousToken }
}

/**
 * Returns the device of a request where the account of this address knows it: by the device cookie, else by a refresh token of the account
 * that we made, also an expired or used one. Neither counts once its session was revoked, or its row is gone. Asks the database only
 * where the request shows something of this very address, or a token that we made: the time says nothing about other accounts.
 * @param email in lower case
 */
export async function findKnownDevice(ctx: AuthContext, email: string, shown: ShownDevice): Promise<KnownDevice | null> {
  const device = shown.devices.find((device) => isOfAddress(ctx, device, email))
  if (device && (await isKnown(ctx, email, device))) return { id: device.id }
  return shown.previousToken === undefined ? null : findByToken(ctx, email, shown.previousToken)
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

/** Also an expired token counts. Not 0, which jsonwebtoken takes for now. */
const longAgo = new Date(1_000)

/** Every refresh makes another token of one session, and all of them have its end: together they are one device. */
async function findByStatelessToken(ctx: AuthContext, email: string, token: string): Promise<KnownDevice | null> {
  const session = readQuietly(() => readStatelessToken(ctx, token, longAgo))
  const user = session && (await ctx.store.users.find(session.userId))
  const isKnown = user && isStillTrusted(ctx, session, user) && user.email === email
  return isKnown ? { id: `${user.id} ${session.end}` } : null
}

/** Whether the request's device cookie names this very session: the login that opened it was finished in this browser. */
export function isDeviceOf(ctx: AuthContext, req: Request, session: { id: string }): boolean {
  return readDevices(ctx, req).some(({ sessionId }) => sessionId === session.id)
}

/** The same where the store keeps no sessions: the device cookie names the account alone. */
export function isDeviceOfAccount(ctx: AuthContext, req: Request, user: UserRecord): boolean {
  return readDevices(ctx, req).some((device) => isOfAccount(ctx, device, user))
}
