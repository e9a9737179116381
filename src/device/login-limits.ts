import type { AuthContext } from '../context'
import { LoginThrottledError, TooManyRequestsError } from '../errors'
import { type Attempt, takeAttempt } from '../limits/take-attempt'
import { takeAttempts } from '../limits/take-of-each'
import { findKnownDevice, type KnownDevice, type ShownDevice } from './known-device'

export interface LoginAttemptOf {
  /** In lower case. */
  readonly email: string
  /** Null: called without HTTP. */
  readonly client: string | null
  readonly shown: ShownDevice
}

/** What a login has taken before its password is looked at. Call one of the three, once. */
export interface TakenLogin {
  succeed(): Promise<void>
  fail(): Promise<void>
  /** Busy or broken is not a failed guess. */
  giveBack(): Promise<void>
}

/**
 * Takes what a login may use: of a known device its own ten attempts, and otherwise, or when these are used up, of the client's and the
 * address's. So nobody who keeps guessing keeps the owner out of a device of theirs.
 * @throws LoginThrottledError, ServiceUnavailableError (too many logins in flight)
 */
export async function takeLogin(ctx: AuthContext, { email, client, shown }: LoginAttemptOf): Promise<TakenLogin> {
  const device = await findKnownDevice(ctx, email, shown)
  const own = device && (await takeOwn(ctx, email, device))
  if (own) return { succeed: own.clear, fail: own.keep, giveBack: own.giveBack }
  const taken = await takeAttempts(ctx, ctx.budgets.login, { name: 'login', email, client }, LoginThrottledError)
  const all = Object.values(taken) as Attempt[]
  return {
    // A client's other failures stay: logins of its own buy nobody more guesses.
    succeed: () => together([taken.email.clear(), taken.pair.clear(), taken.client.giveBack(), taken.network.giveBack()]),
    fail: () => together(all.map((unit) => unit.keep())),
    giveBack: () => together(all.map((unit) => unit.giveBack())),
  }
}

/**
 * The same for a login that names no address: of the client alone.
 * @throws LoginThrottledError, ServiceUnavailableError (too many logins in flight)
 */
export async function takeLoginOfClient(ctx: AuthContext, client: string | null): Promise<TakenLogin> {
  const taken = await takeAttempts(ctx, ctx.budgets.login, { name: 'login', email: null, client }, LoginThrottledError)
  const both = [taken.client, taken.network]
  const giveBack = () => together(both.map((unit) => unit.giveBack()))
  return { succeed: giveBack, fail: () => together(both.map((unit) => unit.keep())), giveBack }
}

/** Null: they are used up. Then the others decide, so nobody is told. */
async function takeOwn(ctx: AuthContext, email: string, { id }: KnownDevice): Promise<Attempt | null> {
  const { login: budget } = ctx.budgets.device
  try {
    return await takeAttempt(ctx, { name: 'login:device', subject: `${id} ${email}`, budget }, LoginThrottledError)
  } catch (error) {
    if (error instanceof TooManyRequestsError) return null
    throw error
  }
}

async function together(ends: readonly Promise<void>[]): Promise<void> {
  await Promise.all(ends)
}
