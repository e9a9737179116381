import { createHmac, type KeyObject, randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../../context'
import { isUnderAny, type Keys } from '../../core/keys'
import { text } from '../../http/input'
import type { SessionStore, SessionWithUser, UserRecord } from '../../store/auth-store'
import { epochSeconds } from '../challenge'
import { type ProofReadContext, readProofCookie, setProofCookie } from '../cookies'
import { readQuietly, readSessionToken } from '../find-session'
import type { Device } from '../login'
import { isStillTrusted, readStatelessToken } from '../stateless-refresh-token'

type DeviceContext = Pick<AuthContext, 'keys' | 'now' | 'prefix' | 'settings'> & {
  readonly store: { readonly users: Pick<AuthContext['store']['users'], 'fields'> }
}

/** The part of the context that reads the cookie. Guards that know the secret read the cookie too. */
export interface DeviceReadContext extends ProofReadContext {
  readonly keys: Pick<Keys, 'proof-cookie' | 'device'>
}

const cookieName = 'auth_device'
const lifetimeSeconds = 180 * 86_400
const mostAccounts = 10

/** Returns the device entry of a login. `user` is the user's row after the login's changes. */
export function newDevice(ctx: DeviceContext, user: UserRecord, sessionId: string | null): Device {
  const [key] = ctx.keys.device
  return {
    account: accountDigest(key, user.id),
    address: addressDigest(key, user.email),
    id: randomBytes(16).toString('base64url'),
    sessionId,
    digest: credentialDigest(ctx, key, user),
    end: epochSeconds(ctx.now()) + lifetimeSeconds,
    at: ctx.now().getTime(),
  }
}

/** Returns an entry that names no session and belongs to no account's credentials, so that it proves nothing, now or later. */
export function strangeDevice(ctx: DeviceContext, user: UserRecord): Device {
  return { ...newDevice(ctx, user, null), digest: '' }
}

/** Returns the devices in the request's cookie, newest first. */
export function readDevices(ctx: DeviceReadContext, req: Request): Device[] {
  const devices = JSON.parse(readProofCookie(ctx, req, cookieName) ?? '[]') as Device[] // its MAC is valid, so `writeDevices` wrote it
  // An entry without a time is as old as can be.
  return devices.filter(({ end }) => end > epochSeconds(ctx.now())).map((device) => ({ ...device, at: device.at ?? 0 }))
}

/**
 * Writes the ten newest entries into the cookie, one for each account. The cookie lasts until the last of these entries ends. It reaches
 * every path of the host, so that a logout of the host names the session too.
 */
export function writeDevices(ctx: DeviceContext, res: Response, devices: readonly Device[]): void {
  const kept = devices.slice(0, mostAccounts)
  const end = Math.max(...kept.map((device) => device.end))
  setProofCookie(ctx, res, cookieName, JSON.stringify(kept), end - epochSeconds(ctx.now()), { path: '/' })
}

/**
 * Writes this browser's entry of an account anew, after a change of the password or the address by the account's owner. The change
 * invalidates the entry, but the browser stays the owner's. Does nothing if the browser has no entry of the account.
 * @param user the row after the change
 */
export function renewDevice(ctx: DeviceContext, req: Request, res: Response, user: UserRecord): void {
  const devices = readDevices(ctx, req)
  const old = deviceOf(ctx, devices, user.id)
  if (!old) return
  const renewed = { ...(old.digest === '' ? strangeDevice(ctx, user) : newDevice(ctx, user, old.sessionId)), id: old.id, at: old.at }
  replaceDevice(ctx, res, devices, old, renewed)
}

/**
 * Notes in this browser's entry of an account that the person showed a credential, and that the browser got a new value of its session. An
 * access token without `sid` is fresh beside such an entry, and not beside a copy that was made before.
 */
export function confirmDevice(ctx: DeviceContext, req: Request, res: Response, session: { userId: string; id: string | null }): void {
  const devices = readDevices(ctx, req)
  const old = deviceOf(ctx, devices, session.userId)
  if (old && old.sessionId === session.id) replaceDevice(ctx, res, devices, old, { ...old, at: ctx.now().getTime() })
}

function replaceDevice(ctx: DeviceContext, res: Response, devices: readonly Device[], old: Device, renewed: Device): void {
  writeDevices(
    ctx,
    res,
    devices.map((device) => (device === old ? renewed : device)),
  )
}

function deviceOf(ctx: Pick<DeviceReadContext, 'keys'>, devices: readonly Device[], userId: string): Device | undefined {
  return devices.find((device) => isOfUser(ctx, device, userId))
}

export function isOfUser({ keys }: Pick<DeviceReadContext, 'keys'>, device: Device, userId: string): boolean {
  return isUnderAny(keys.device, (key) => accountDigest(key, userId) === device.account)
}

export function isOfAddress({ keys }: Pick<DeviceReadContext, 'keys'>, device: Device, email: string): boolean {
  return isUnderAny(keys.device, (key) => addressDigest(key, email) === device.address)
}

/** Returns true if the account's password and address have not changed since the login that made the device entry. */
export function isOfAccount(ctx: DeviceContext, device: Device, user: UserRecord): boolean {
  return isUnderAny(ctx.keys.device, (key) => credentialDigest(ctx, key, user) === device.digest)
}

/** A session that the device cookie names. */
export interface SessionOfDevice extends SessionWithUser {
  /** When the person last showed a credential in this browser, in milliseconds since 1970. */
  readonly confirmedAt: number
}

/**
 * Returns the session that the device cookie names for an account, even if the session has ended. The cookie is no credential: the caller
 * must have another one.
 */
export async function findSessionOfDevice(
  ctx: DeviceReadContext,
  sessions: Pick<SessionStore, 'find'>,
  req: Request,
  userId: string,
): Promise<SessionOfDevice | null> {
  const device = deviceOf(ctx, readDevices(ctx, req), userId)
  const found = device?.sessionId ? await sessions.find({ id: device.sessionId }) : null
  return device && found?.session.id === device.sessionId && found.session.userId === userId ? { ...found, confirmedAt: device.at } : null
}

/** Returns the id of the session that the device cookie names for an account. */
export function sessionIdOfDevice(ctx: DeviceReadContext, req: Request, userId: string): string | null {
  return deviceOf(ctx, readDevices(ctx, req), userId)?.sessionId ?? null
}

function accountDigest(key: KeyObject, userId: string): string {
  return digestOf(key, ['account', userId])
}

function addressDigest(key: KeyObject, email: string): string {
  return digestOf(key, ['address', email])
}

/**
 * Returns a digest of the address and of the time when the password was set. A login that stores a better hash of the same password does
 * not change it. Without a column for the time, the hash counts. The digest is an HMAC, because browsers see the digest and a host's
 * password hashes may be weak.
 */
function credentialDigest({ store }: Pick<DeviceContext, 'store'>, key: KeyObject, { id, email, ...user }: UserRecord): string {
  const seconds = user.passwordSetAt && epochSeconds(user.passwordSetAt) // a host's column can store only whole seconds
  const password = store.users.fields.has('passwordSetAt') ? String(seconds) : user.hashedPassword
  return digestOf(key, ['credentials', id, email, password])
}

/** Returns an HMAC of 128 bits. The HMAC is short, so that ten devices fit into a cookie. */
function digestOf(key: KeyObject, parts: readonly (string | null)[]): string {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest().toString('base64url', 0, 16)
}

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
