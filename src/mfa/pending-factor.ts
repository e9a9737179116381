import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaNotEnrolledError, UnauthorizedError } from '../errors'
import { acceptTotpCode, recoveryCodesOf, stepOfCode } from '../factor/second-factor'
import type { UserRecord } from '../store/auth-store'
import { findReplacement, type Replacement } from './enrolment'

/** A factor that was begun, and waits for its first code. */
export interface PendingFactor {
  /** The locked row, as it is before the factor is active. */
  readonly user: UserRecord
  /** As it is stored. */
  readonly secret: string
  /** Null: the account has no active factor. */
  readonly replacement: Replacement | null
}

/** Locks the user's row. @throws UnauthorizedError, MfaNotEnrolledError (nothing is pending) */
export async function lockPendingFactor(ctx: AuthContext, userId: string): Promise<PendingFactor> {
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  const replacement = user.totpEnabledAt ? await findReplacement(ctx, userId) : null
  const secret = user.totpEnabledAt ? replacement?.secret : user.totpSecret
  if (!secret) throw new MfaNotEnrolledError()
  return { user, secret, replacement }
}

/** The row is held: the secret that is confirmed is the one that is active afterwards. @throws MfaCodeInvalidError */
export async function activateFactor(ctx: AuthContext, { user, replacement }: PendingFactor, code: string): Promise<UserRecord> {
  const now = ctx.now()
  const changes = { totpEnabledAt: now, updatedAt: now, ...(replacement ? acceptedIn(ctx, user, replacement, code) : {}) }
  if (!replacement && !(await acceptTotpCode(ctx, user, code))) throw new MfaCodeInvalidError()
  await ctx.store.users.update(user.id, changes)
  if (replacement) await recoveryCodesOf(ctx).replaceForUser(user.id, replacement.recoveryCodes)
  return { ...user, ...changes }
}

/** The step counts from here: the code that confirms is good for nothing else. */
function acceptedIn(ctx: AuthContext, user: UserRecord, { secret }: Replacement, code: string) {
  const step = stepOfCode(ctx, { id: user.id, totpSecret: secret }, code)
  if (step === null) throw new MfaCodeInvalidError()
  return { totpSecret: secret, totpLastStep: step }
}
