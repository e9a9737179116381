import { createHmac, type KeyObject, randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { isUnderAny, type Keys } from '../core/keys'
import type { SessionStore, SessionWithUser, UserRecord } from '../store/auth-store'
import type { Device } from './login'
import { epochSeconds } from './private-token'
import { type ProofReadContext, readProofCookie, setProofCookie } from './proof-cookies'

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
