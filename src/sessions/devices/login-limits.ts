import type { AuthContext } from '../../context'
import { LoginThrottledError, TooManyRequestsError } from '../../core/errors'
import { eventDigest } from '../../core/events'
import { attempt, type CountedAttempt, countAttempt, counterKey, takeAttempts, takeUnits } from '../../rate-limits/rate-limiter'
import { findKnownDevice, type KnownDevice, type PresentedDevice } from './device-cookie'

interface LoginAttemptOf {
  /** The address in lower case. */
  readonly email: string
  /** Null for a call without HTTP. */
  readonly client: string | null
  readonly presented: PresentedDevice
}

/** A counted attempt. The password is verified later. Call exactly one of these methods, once. */
interface TakenLogin {
  /** True: the attempt counts against the limit of a known device. */
  readonly isKnownDevice: boolean
  succeed(): Promise<void>
  fail(): Promise<void>
  /** Takes the attempt back. Call it after an overload or an error, because neither is a failed guess. */
  giveBack(): Promise<void>
}

/**
 * Counts a login attempt. A known device has a separate limit of ten attempts. For other clients, and beyond that limit, the function
 * counts against the limits of the client and the address. An attacker who keeps guessing therefore cannot lock the owner out of a known
 * device.
 * @throws LoginThrottledError, ServiceUnavailableError (too many logins in flight)
 */
export async function takeLogin(ctx: AuthContext, { email, client, presented }: LoginAttemptOf): Promise<TakenLogin> {
  const device = await findKnownDevice(ctx, email, presented)
  const own = device && (await takeOwn(ctx, email, device))
  if (own) return { isKnownDevice: true, succeed: own.clear, fail: own.keep, giveBack: own.giveBack }
  const taken = await takeAttempts(ctx, ctx.rateLimits.login, { name: 'login', email, client }, LoginThrottledError)
  const all = Object.values(taken) as CountedAttempt[]
  return {
    isKnownDevice: false,
    // The client's other failures stay counted. Otherwise an attacker could log in to their own account to get more guesses.
    succeed: () => together([taken.email.clear(), taken.pair.clear(), taken.client.giveBack(), taken.network.giveBack()]),
    fail: () => together(all.map((unit) => unit.keep())),
    giveBack: () => together(all.map((unit) => unit.giveBack())),
  }
}

/**
 * Counts a login attempt without an address, against the limit of the client only.
 * @throws LoginThrottledError, ServiceUnavailableError (too many logins in flight)
 */
export async function takeLoginOfClient(ctx: AuthContext, client: string | null): Promise<TakenLogin> {
  const taken = await takeAttempts(ctx, ctx.rateLimits.login, { name: 'login', email: null, client }, LoginThrottledError)
  const both = [taken.client, taken.network]
  const giveBack = () => together(both.map((unit) => unit.giveBack()))
  return { isKnownDevice: false, succeed: giveBack, fail: () => together(both.map((unit) => unit.keep())), giveBack }
}

/**
 * Counts an attempt against the limit of the known device. Returns null if that limit is reached. The function then emits no event, because
 * the caller also counts the attempt against the other limits.
 */
async function takeOwn(ctx: AuthContext, email: string, { id }: KnownDevice): Promise<CountedAttempt | null> {
  const { login: rateLimit } = ctx.rateLimits.device
  try {
    return await countAttempt(ctx, { name: 'login:device', subject: `${id} ${email}`, rateLimit }, LoginThrottledError)
  } catch (error) {
    if (error instanceof TooManyRequestsError) return null
    throw error
  }
}

async function together(ends: readonly Promise<void>[]): Promise<void> {
  await Promise.all(ends)
}

interface LinkRequest {
  /** The name of the rate limit. */
  readonly name: string
  /** The address in lower case. */
  readonly email: string
  readonly client: string | null
  readonly presented: PresentedDevice
}

/**
 * Counts a request for a link. A known device has a separate limit of five requests. For other clients, and beyond that limit, the function
 * counts against the limits of the client and the address.
 * @returns the known device, which also has a separate limit of mails; null for an unknown client
 * @throws TooManyRequestsError
 */
export async function takeLinkRequest(ctx: AuthContext, { name, email, client, presented }: LinkRequest): Promise<KnownDevice | null> {
  const device = await findKnownDevice(ctx, email, presented)
  if (device && (await hasRequestLeft(ctx, name, email, device))) return device
  await takeUnits(ctx, ctx.rateLimits.links, { name, email, client })
  return null
}

/**
 * Counts a request against the limit of the known device. Returns false if that limit is reached. The function then emits no event, because
 * the caller also counts the request against the other limits.
 */
async function hasRequestLeft(ctx: AuthContext, name: string, email: string, { id }: KnownDevice): Promise<boolean> {
  try {
    await attempt(ctx.counters, ctx.rateLimits.device.links, counterKey(`${name}:device`, `${id} ${email}`), TooManyRequestsError)
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}

/** What is known of a failed login. The login sets the fields while it runs, because it can fail at any step. */
export interface LoginAttempt {
  /** The account, once the login has found it. */
  userId: string | null
  /** The email address that the person typed, or that the provider returned. */
  email: string | null
  /** The key of the client: `clientOf(req)`. Null: the login was called without HTTP, or the address cannot be read. */
  readonly client: string | null
}

export function newLoginAttempt(client: string | null, email: string | null = null): LoginAttempt {
  return { userId: null, email, client }
}

/** Emits `login.failed`. `reason` is the code of the error. */
export function announceFailedLogin(
  ctx: AuthContext,
  { userId, email, client }: LoginAttempt,
  refusal: { reason: string; provider?: string },
): void {
  const addressDigest = email === null ? null : eventDigest(ctx.keys, 'address', email)
  ctx.events.emit('login.failed', { ...refusal, userId, addressDigest, clientKey: client })
}
