import type { AuthContext } from '../../context'
import { TooManyRequestsError } from '../../core/errors'
import { type AppliedLimit, type CountedAttempt, clear, countAttempt, counterKey, tryToCount } from '../../rate-limits/rate-limiter'
import type { EmailLoginRecord } from '../../store/auth-store'

type CountedCode = Pick<EmailLoginRecord, 'email' | 'isKnownDevice'>

/**
 * Counts before the code is compared; release the attempt if it is right. Null: the address had too many wrong codes, and the code counts as
 * wrong. The event `throttled` tells the reason.
 */
export async function countCode(ctx: AuthContext, code: CountedCode): Promise<CountedAttempt | null> {
  try {
    return await countAttempt(ctx, [limitOf(ctx, code)])
  } catch (error) {
    if (error instanceof TooManyRequestsError) return null
    throw error
  }
}

/** False: the mail has the link alone. */
export async function mayMailCode(ctx: AuthContext, code: CountedCode): Promise<boolean> {
  const counted = await tryToCount(ctx, [limitOf(ctx, code)])
  await counted?.release()
  return counted !== null
}

/** After a login of the account. */
export async function forgetMailedCodes(ctx: Pick<AuthContext, 'counters' | 'rateLimits' | 'settings'>, email: string): Promise<void> {
  if (ctx.settings.mailedCodes === 'off') return
  for (const name of Object.values(names)) await clear(ctx.counters, ctx.rateLimits.codes, counterKey(name, email))
}

/** Strangers cannot use up the limit of the owner's devices. */
const names = { strangers: 'codes:address', devices: 'codes:devices' } as const

function limitOf({ rateLimits }: Pick<AuthContext, 'rateLimits'>, { email, isKnownDevice }: CountedCode): AppliedLimit {
  return { name: isKnownDevice ? names.devices : names.strangers, subject: email, rateLimit: rateLimits.codes }
}
