import { createHmac, type KeyObject, randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { isUnderAny } from '../keys'
import type { Device } from '../session/finish-login'
import { epochSeconds } from '../session/private-token'
import { readProofCookie, setProofCookie } from '../session/proof-cookies'
import type { UserRecord } from '../store/auth-store'

type DeviceContext = Pick<AuthContext, 'keys' | 'now' | 'prefix' | 'settings'>

const cookieName = 'auth_device'
const lifetimeSeconds = 180 * 86_400
const mostAccounts = 10

/** Returns the device entry of a login. `user` is the user's row after the login's changes. */
export function newDevice(ctx: DeviceContext, user: UserRecord, sessionId: string | null): Device {
  const [key] = ctx.keys.device
  return {
    address: addressDigest(key, user.email),
    id: randomBytes(16).toString('base64url'),
    sessionId,
    digest: credentialDigest(key, user),
    end: epochSeconds(ctx.now()) + lifetimeSeconds,
  }
}

/** Returns the devices in the request's cookie, newest first. */
export function readDevices(ctx: DeviceContext, req: Request): Device[] {
  const devices = JSON.parse(readProofCookie(ctx, req, cookieName) ?? '[]') as Device[] // its MAC is valid, so `writeDevices` wrote it
  return devices.filter(({ end }) => end > epochSeconds(ctx.now()))
}

/** Writes the ten newest entries into the cookie, one for each account. The cookie lasts until the last of these entries ends. */
export function writeDevices(ctx: DeviceContext, res: Response, devices: readonly Device[]): void {
  const kept = devices.slice(0, mostAccounts)
  const end = Math.max(...kept.map((device) => device.end))
  setProofCookie(ctx, res, cookieName, JSON.stringify(kept), end - epochSeconds(ctx.now()))
}

export function isOfAddress({ keys }: DeviceContext, device: Device, email: string): boolean {
  return isUnderAny(keys.device, (key) => addressDigest(key, email) === device.address)
}

/** Returns true if the account's password and address have not changed since the login that made the device entry. */
export function isOfAccount({ keys }: DeviceContext, device: Device, user: UserRecord): boolean {
  return isUnderAny(keys.device, (key) => credentialDigest(key, user) === device.digest)
}

function addressDigest(key: KeyObject, email: string): string {
  return digestOf(key, ['address', email])
}

/** Returns a digest of the credentials. The digest is an HMAC, because browsers see the digest and a host's password hashes may be weak. */
function credentialDigest(key: KeyObject, { id, email, hashedPassword }: UserRecord): string {
  return digestOf(key, ['credentials', id, email, hashedPassword])
}

/** Returns an HMAC of 128 bits. The HMAC is short, so that ten devices fit into a cookie. */
function digestOf(key: KeyObject, parts: readonly (string | null)[]): string {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest().toString('base64url', 0, 16)
}
