import { mailNotice } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaThrottledError } from '../core/errors'
import type { Locale } from '../http/locale'
import { type CountedAttempt, countAttempt, counterKey, tellThrottled, tryToCount } from '../rate-limits/rate-limiter'
import type { KnownDevice } from '../sessions/devices/device-cookie'
import { isRecoveryCode } from './accept-code'

/** Wrong codes until the owner gets a notice: the client has passed the first factor, so an attacker may know the password. */
const toldAt = 3

/**
 * Counts before the code is verified, together for all routes. A success resets the wrong codes; a new first step of a login does not. At
 * the third wrong code the owner gets a mail.
 * @throws MfaThrottledError, and the errors of the attempt
 */
export async function guardedAttempt<T>(
  ctx: AuthContext,
  typed: TypedCode & { locale?: Locale | undefined },
  attempt: () => Promise<T>,
): Promise<T> {
  const counted = await takeCode(ctx, typed)
  try {
    const result = await attempt()
    await counted.succeed()
    return result
  } catch (error) {
    // Only a wrong code counts.
    if (!(error instanceof MfaCodeInvalidError)) await counted.release()
    else await announceWrongCode(ctx, typed, await counted.fail())
    throw error
  }
}

async function announceWrongCode(
  ctx: AuthContext,
  { userId, locale }: { userId: string; locale?: Locale | undefined },
  count: number,
): Promise<void> {
  ctx.events.emit('mfa.failed', { userId })
  const user = count === toldAt ? await ctx.store.users.find(userId) : null
  if (user) mailNotice(ctx, user, 'wrong_codes', locale)
}

/** A factor that is not active yet has a separate rate limit. */
export async function guardedConfirmation<T>(ctx: AuthContext, userId: string, attempt: () => Promise<T>): Promise<T> {
  const limit = { name: 'mfa_confirm:account', subject: userId, rateLimit: ctx.rateLimits.mfa }
  const counted = await countAttempt(ctx, [limit], { Exhausted: MfaThrottledError })
  try {
    const result = await attempt()
    await counted.succeed()
    return result
  } catch (error) {
    if (!(error instanceof MfaCodeInvalidError)) await counted.release()
    else ctx.events.emit('mfa.failed', { userId })
    throw error
  }
}

interface TypedCode {
  readonly userId: string
  readonly code: string
  /** Null for an unknown client. */
  readonly device?: KnownDevice | null
}

/** Call exactly one of the three methods after the verification. */
interface TakenCode {
  succeed(): Promise<void>
  /** @returns the number of wrong codes since the last right code */
  fail(): Promise<number>
  /** For an error that was not a wrong code. */
  release(): Promise<void>
}

/** Wrong codes since the last right code, after which TOTP is blocked for a day. */
const mostWrong = 20
const stopSeconds = 86_400
/** From the first wrong code. When the wrong codes are forgotten, their block also ends. */
const memorySeconds = 30 * 86_400

/**
 * A known device has five TOTP codes and five recovery codes per 900 s. Then, and for unknown clients, the account's limits apply. After
 * twenty wrong codes the account's TOTP is blocked. Recovery codes are never blocked.
 * @throws MfaThrottledError
 */
export async function takeCode(ctx: AuthContext, typed: TypedCode): Promise<TakenCode> {
  if (ctx.rateLimits.mfa === false) return { succeed: async () => undefined, fail: async () => 0, release: async () => undefined }
  return (await takeOfDevice(ctx, typed)) ?? (isRecoveryCode(typed.code) ? takeRecovery(ctx, typed) : takeTotp(ctx, typed))
}

/** Also ends the block. */
export async function forgetWrongCodes(ctx: Pick<AuthContext, 'counters'>, userId: string): Promise<void> {
  await forget(ctx, userId, [wrong, stopped, totp, recovery])
}

const [wrong, stopped, totp, recovery] = ['mfa:wrong', 'mfa:stopped', 'mfa:account', 'mfa:recovery'] as const

async function takeTotp(ctx: AuthContext, { userId }: TypedCode): Promise<TakenCode> {
  const counted = await countCodeOf(ctx, totp, userId)
  const { count, stopSecondsLeft } = await countCode(ctx, userId)
  if (stopSecondsLeft > 0) {
    await counted.release()
    throw stoppedError(ctx, userId, stopSecondsLeft)
  }
  return {
    succeed: () => forget(ctx, userId, [wrong, totp]),
    fail: () => noteWrong(ctx, userId, count),
    release: async () => void (await Promise.all([counted.release(), ctx.counters.decrement(counterKey(wrong, userId))])),
  }
}

function countCodeOf(ctx: AuthContext, name: string, subject: string): Promise<CountedAttempt> {
  return countAttempt(ctx, [{ name, subject, rateLimit: ctx.rateLimits.mfa }], { Exhausted: MfaThrottledError })
}

function stoppedError(ctx: AuthContext, userId: string, retryAfterSeconds: number): MfaThrottledError {
  tellThrottled(ctx, { code: MfaThrottledError.code, route: 'mfa', key: counterKey(stopped, userId), retryAfterSeconds })
  return new MfaThrottledError({ details: { retry_after_seconds: retryAfterSeconds } })
}

async function takeRecovery(ctx: AuthContext, { userId }: TypedCode): Promise<TakenCode> {
  const counted = await countCodeOf(ctx, recovery, userId)
  return {
    succeed: () => forgetWrongCodes(ctx, userId),
    fail: async () => noteWrong(ctx, userId, (await countCode(ctx, userId)).count),
    release: counted.release,
  }
}

/** Null if there is no device, or if it has used its limit. */
async function takeOfDevice(ctx: AuthContext, { userId, code, device }: TypedCode): Promise<TakenCode | null> {
  const rateLimit = ctx.rateLimits.device.codes
  if (!device || rateLimit === false) return null
  const isRecovery = isRecoveryCode(code)
  const limit = { name: isRecovery ? 'mfa:device_recovery' : 'mfa:device', subject: `${device.id} ${userId}`, rateLimit }
  const counted = await tryToCount(ctx, [limit])
  return (
    counted && {
      succeed: async () => {
        await counted.succeed()
        await (isRecovery ? forgetWrongCodes(ctx, userId) : forgetUnlessStopped(ctx, userId))
      },
      fail: async () => noteWrong(ctx, userId, (await countCode(ctx, userId)).count),
      release: counted.release,
    }
  )
}

/** A right code of a known device does not end the block: each login of the owner would give an attacker twenty more guesses. */
async function forgetUnlessStopped(ctx: AuthContext, userId: string): Promise<void> {
  const { stopSecondsLeft } = await countCode(ctx, userId)
  if (stopSecondsLeft === 0) await forget(ctx, userId, [wrong, totp])
}

/** As wrong, until the code is known to be right. While TOTP is blocked, nothing is counted. */
async function countCode(ctx: AuthContext, userId: string): Promise<{ count: number; stopSecondsLeft: number }> {
  const key = counterKey(wrong, userId)
  const { count } = await ctx.counters.increment(key, memorySeconds, mostWrong)
  if (count <= mostWrong) return { count, stopSecondsLeft: 0 }
  const stopSecondsLeft = await stop(ctx, userId)
  if (stopSecondsLeft > 0) {
    await ctx.counters.decrement(key)
    return { count, stopSecondsLeft }
  }
  await forget(ctx, userId, [wrong, stopped])
  return countCode(ctx, userId)
}

/**
 * The first call begins the block. The counter lives `memorySeconds` longer, so that a call after the block begins no new one. If the
 * process died before it began the block, the next call begins it.
 * @returns the remaining seconds; 0 if the block is over
 */
async function stop({ counters }: AuthContext, userId: string): Promise<number> {
  const { resetSeconds } = await counters.increment(counterKey(stopped, userId), stopSeconds + memorySeconds, 1)
  return Math.max(0, Math.ceil(resetSeconds) - memorySeconds)
}

/** Ends an old block at the first wrong code, and begins one at the last allowed wrong code. Returns `count`. */
async function noteWrong(ctx: AuthContext, userId: string, count: number): Promise<number> {
  if (count === 1) await forget(ctx, userId, [stopped]) // the old block belongs to codes that are no longer remembered
  if (count === mostWrong) await stop(ctx, userId)
  return count
}

async function forget({ counters }: Pick<AuthContext, 'counters'>, userId: string, names: readonly string[]): Promise<void> {
  for (const name of names) await counters.reset(counterKey(name, userId))
}
