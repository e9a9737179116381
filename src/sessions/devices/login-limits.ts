import type { AuthContext } from '../../context'
import { clientKey } from '../../core/client-key'
import { AppError, LoginThrottledError } from '../../core/errors'
import { eventDigest } from '../../core/events'
import { type CountedAttempt, countAttempt, limitsOfSubjects, tryToCount } from '../../rate-limits/rate-limiter'
import type { UserRecord } from '../../store/auth-store'
import type { LoginClient } from '../login'
import { stateRefusal } from '../state-refusal'
import { findKnownDevice, type KnownDevice, type PresentedDevice } from './device-cookie'

interface LoginAttemptOf {
  /** In lower case. */
  readonly email: string
  /** Null for a call without HTTP. */
  readonly client: string | null
  readonly presented: PresentedDevice
}

/**
 * A known device has a separate limit of ten attempts, so an attacker who keeps guessing cannot lock the owner out of it. Other clients,
 * and a device beyond its limit, count against the limits of the client and the address.
 * @throws LoginThrottledError, ServiceUnavailableError (too many logins in flight)
 */
export async function countLogin(
  ctx: AuthContext,
  { email, client, presented }: LoginAttemptOf,
): Promise<CountedAttempt & { readonly isKnownDevice: boolean }> {
  const device = await findKnownDevice(ctx, email, presented)
  const ofDevice = device && [{ name: 'login:device', subject: `${device.id} ${email}`, rateLimit: ctx.rateLimits.device.login }]
  const own = ofDevice && (await tryToCount(ctx, ofDevice, waiting))
  if (own) return { isKnownDevice: true, ...own }
  return {
    isKnownDevice: false,
    ...(await countAttempt(ctx, limitsOfSubjects(ctx.rateLimits.login, { name: 'login', email, client }), waiting)),
  }
}

/** Counts against the client only. @throws LoginThrottledError, ServiceUnavailableError (too many logins in flight) */
export function countLoginOfClient(ctx: AuthContext, client: string | null): Promise<CountedAttempt> {
  return countAttempt(ctx, limitsOfSubjects(ctx.rateLimits.login, { name: 'login', email: null, client }), waiting)
}

const waiting = { Exhausted: LoginThrottledError, waits: true } as const

interface LinkRequest {
  readonly name: string
  /** In lower case. */
  readonly email: string
  readonly client: string | null
  readonly presented: PresentedDevice
}

/** A known device has its own limits of requests and mails. @returns the known device; null for an unknown client */
export async function countLinkRequest(ctx: AuthContext, { name, email, client, presented }: LinkRequest): Promise<KnownDevice | null> {
  const device = await findKnownDevice(ctx, email, presented)
  const ofDevice = device && [{ name: `${name}:device`, subject: `${device.id} ${email}`, rateLimit: ctx.rateLimits.device.links }]
  if (ofDevice && (await tryToCount(ctx, ofDevice))) return device
  await countAttempt(ctx, limitsOfSubjects(ctx.rateLimits.links, { name, email, client }))
  return null
}

/** A login sets the fields while it runs, because it can fail at any step. */
export interface LoginAttempt {
  userId: string | null
  /** As the person typed it, or the provider returned it. */
  email: string | null
  /** `clientOf(req)`. Null: the login was called without HTTP, or the address cannot be read. */
  readonly client: string | null
}

export function newLoginAttempt(client: string | null, email: string | null = null): LoginAttempt {
  return { userId: null, email, client }
}

/** `reason` is the code of the error. */
export function announceFailedLogin(
  ctx: AuthContext,
  { userId, email, client }: LoginAttempt,
  refusal: { reason: string; provider?: string },
): void {
  const addressDigest = email === null ? null : eventDigest(ctx.keys, 'address', email)
  ctx.events.emit('login.failed', { ...refusal, userId, addressDigest, clientKey: client })
}

/** For a login that has no attempt of its own: its step announces other failures. */
export async function announcingRefusal<T>(
  ctx: AuthContext,
  { origin }: LoginClient,
  user: UserRecord,
  finish: () => Promise<T>,
): Promise<T> {
  try {
    return await finish()
  } catch (error) {
    if (error instanceof AppError && stateRefusal(ctx, user)?.code === error.code)
      announceFailedLogin(ctx, { userId: user.id, email: user.email, client: clientKey(origin.ip) }, { reason: error.code })
    throw error
  }
}
