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

/** Guards that know the secret read the cookie too. */
export interface DeviceReadContext extends ProofReadContext {
  readonly keys: Pick<Keys, 'proof-cookie' | 'device'>
}

const cookieName = 'auth_device'
const lifetimeSeconds = 180 * 86_400
const mostAccounts = 10

export function newDevice(ctx: DeviceContext, user: UserRecord, sessionId: string | null): Device {
  const [key] = ctx.keys.device
  return {
    account: userDigest(key, user.id),
    address: addressDigest(key, user.email),
    id: randomBytes(16).toString('base64url'),
    sessionId,
    digest: credentialDigest(ctx, key, user),
    end: epochSeconds(ctx.now()) + lifetimeSeconds,
    at: ctx.now().getTime(),
  }
}

/** An entry that names no session and no credentials, so that it proves nothing, now or later. */
export function strangeDevice(ctx: DeviceContext, user: UserRecord): Device {
  return { ...newDevice(ctx, user, null), digest: '' }
}

export function readDevices(ctx: DeviceReadContext, req: Request): Device[] {
  const devices = JSON.parse(readProofCookie(ctx, req, cookieName) ?? '[]') as Device[] // its MAC is valid, so `writeDevices` wrote it
  // An entry without a time is as old as can be.
  return devices.filter(({ end }) => end > epochSeconds(ctx.now())).map((device) => ({ ...device, at: device.at ?? 0 }))
}

/** Writes the ten newest entries, one for each account. The path is the whole host, so that a logout of the host names the session too. */
export function writeDevices(ctx: DeviceContext, res: Response, devices: readonly Device[]): void {
  const kept = devices.slice(0, mostAccounts)
  const end = Math.max(...kept.map((device) => device.end))
  setProofCookie(ctx, res, cookieName, JSON.stringify(kept), end - epochSeconds(ctx.now()), { path: '/' })
}

/** The owner's browser keeps its entry after a change of password or address. @param user the row after the change */
export function renewDevice(ctx: DeviceContext, req: Request, res: Response, user: UserRecord): void {
  const devices = readDevices(ctx, req)
  const old = deviceOf(ctx, devices, user.id)
  if (!old) return
  const renewed = { ...(old.digest === '' ? strangeDevice(ctx, user) : newDevice(ctx, user, old.sessionId)), id: old.id, at: old.at }
  replaceDevice(ctx, res, devices, old, renewed)
}

/** Beside this entry, and not beside an older copy, an access token without `sid` is fresh. */
export function confirmKnownDevice(ctx: DeviceContext, req: Request, res: Response, session: { userId: string; id: string | null }): void {
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

export function isOfUser({ keys }: Pick<DeviceReadContext, 'keys'>, device: Pick<Device, 'account'>, userId: string): boolean {
  return isUnderAny(keys.device, (key) => userDigest(key, userId) === device.account)
}

export function isOfAddress({ keys }: Pick<DeviceReadContext, 'keys'>, device: Device, email: string): boolean {
  return isUnderAny(keys.device, (key) => addressDigest(key, email) === device.address)
}

/** True while the account's password and address are those of the login that made the entry. */
export function isOfAccount(ctx: DeviceContext, device: Device, user: UserRecord): boolean {
  return isUnderAny(ctx.keys.device, (key) => credentialDigest(ctx, key, user) === device.digest)
}

export interface SessionOfDevice extends SessionWithUser {
  /** When the person last showed a credential in this browser, in milliseconds since 1970. */
  readonly confirmedAt: number
}

/** Finds also a session that has ended. The cookie is no credential: the caller must have another one. */
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

export function sessionIdOfDevice(ctx: DeviceReadContext, req: Request, userId: string): string | null {
  return deviceOf(ctx, readDevices(ctx, req), userId)?.sessionId ?? null
}

export function userDigest(key: KeyObject, userId: string): string {
  return digestOf(key, ['account', userId])
}

function addressDigest(key: KeyObject, email: string): string {
  return digestOf(key, ['address', email])
}

/**
 * A better hash of the same password does not change the digest. Without a column for the password's time, the hash counts. An HMAC,
 * because browsers see the digest and a host's password hashes may be weak.
 */
function credentialDigest({ store }: Pick<DeviceContext, 'store'>, key: KeyObject, { id, email, ...user }: UserRecord): string {
  const seconds = user.passwordSetAt && epochSeconds(user.passwordSetAt) // a host's column can store only whole seconds
  const password = store.users.fields.has('passwordSetAt') ? String(seconds) : user.hashedPassword
  return digestOf(key, ['credentials', id, email, password])
}

/** 128 bits, so that ten devices fit into a cookie. */
function digestOf(key: KeyObject, parts: readonly (string | null)[]): string {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest().toString('base64url', 0, 16)
}

/** A client in which the owner logged in before. It has separate rate limits, which other clients cannot use up. */
export interface KnownDevice {
  /** The same in all requests of a device. */
  readonly id: string
}

/** Not verified yet. */
export interface PresentedDevice {
  readonly devices: readonly Device[]
  readonly previousToken: string | undefined
}

export const previousToken = { previous_token: text(4096).optional() } as const satisfies Joi.SchemaMap

export function presentedDevice(ctx: AuthContext, req: Request, body: { previous_token?: string | undefined } = {}): PresentedDevice {
  return { devices: readDevices(ctx, req), previousToken: body.previous_token }
}

/** For a call of `auth.service`, which has no request and no device cookie. */
export function tokenPresented({ previousToken }: { previousToken?: string | undefined }): PresentedDevice {
  return { devices: [], previousToken }
}

/**
 * Checks the device cookie, then a refresh token, even an expired or used one. A revoked session or one without a row does not count.
 * Queries only for a device of this address or a token that we made, so the time reveals nothing about other accounts.
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

/** So early that an expired stateless token counts too. Not 0, because jsonwebtoken reads 0 as the current time. */
const longAgo = new Date(1_000)

/** Every refresh keeps the absolute end of the login. So the user and this end identify the device. */
async function findByStatelessToken(ctx: AuthContext, email: string, token: string): Promise<KnownDevice | null> {
  const session = readQuietly(() => readStatelessToken(ctx, token, longAgo))
  const user = session && (await ctx.store.users.find(session.userId))
  const isKnown = user && isStillTrusted(ctx, session, user) && user.email === email
  return isKnown ? { id: `${user.id} ${session.end}` } : null
}

/** For a store without sessions: its device cookie names no session. */
export function isDeviceOfAccount(ctx: AuthContext, req: Request, user: UserRecord): boolean {
  return readDevices(ctx, req).some((device) => isOfAccount(ctx, device, user))
}
