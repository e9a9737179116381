import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import { epochSeconds } from '../sessions/challenge'
import { readProofCookie, setProofCookie } from '../sessions/cookies'
import { isOfUser, userDigest } from '../sessions/devices/device-cookie'
import type { LoginBrowser, TrustEntry } from '../sessions/login'
import type { TrustedDeviceStore, UserRecord } from '../store/auth-store'

const cookieName = 'auth_trust'
const mostAccounts = 10

/** Null if `trustedDeviceDays` is 0, so that no code uses the table. */
export function trustedDevicesOf({ settings, store }: Pick<AuthContext, 'settings' | 'store'>): TrustedDeviceStore | null {
  return (settings.trustedDeviceDays > 0 && store.trustedDevices) || null
}

export function newTrustEntry(ctx: AuthContext, userId: string, endsAt: Date): TrustEntry {
  return { account: userDigest(ctx.keys.device[0], userId), token: newOpaqueToken(), end: epochSeconds(endsAt) }
}

export function readTrusts(ctx: AuthContext, req: Request): TrustEntry[] {
  const entries = JSON.parse(readProofCookie(ctx, req, cookieName) ?? '[]') as TrustEntry[] // its MAC is valid, so `writeTrusts` wrote it
  return entries.filter(({ end }) => end > epochSeconds(ctx.now()))
}

/** Writes the ten newest entries, one for each account. The path is the whole host, so that `auth.with` reads the cookie at every path. */
export function writeTrusts(ctx: AuthContext, res: Response, entries: readonly TrustEntry[]): void {
  const kept = entries.slice(0, mostAccounts)
  const end = Math.max(...kept.map((entry) => entry.end))
  setProofCookie(ctx, res, cookieName, JSON.stringify(kept), end - epochSeconds(ctx.now()), { path: '/' })
}

export function trustOfUser(ctx: AuthContext, req: Request, userId: string): TrustEntry | null {
  return readTrusts(ctx, req).find((entry) => isOfUser(ctx, entry, userId)) ?? null
}

/** Without a query: the browser sent an entry of the account, which may stand for the second factor. */
export function mayBeTrusted(ctx: AuthContext, browser: LoginBrowser | undefined, { id }: Pick<UserRecord, 'id'>): boolean {
  return trustedDevicesOf(ctx) !== null && browser !== undefined && trustOfUser(ctx, browser.req, id) !== null
}

/** Null: this browser has no entry of the account, or no browser is trusted. */
export function trustHashOf(ctx: AuthContext, req: Request, userId: string): string | null {
  const entry = trustedDevicesOf(ctx) && trustOfUser(ctx, req, userId)
  return entry && hashOpaqueToken(entry.token)
}
