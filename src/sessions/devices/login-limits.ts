import type { AuthContext } from '../../context'
import { LoginThrottledError, TooManyRequestsError } from '../../core/errors'
import { type CountedAttempt, countAttempt } from '../../rate-limits/take-attempt'
import { takeAttempts } from '../../rate-limits/take-of-each'
import { findKnownDevice, type KnownDevice, type PresentedDevice } from './known-device'

export interface LoginAttemptOf {
  /** The address in lower case. */
  readonly email: string
  /** Null for a call without HTTP. */
  readonly client: string | null
  readonly presented: PresentedDevice
}

/** A counted attempt. The password is verified later. Call exactly one of these methods, once. */
export interface TakenLogin {
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
