import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaNotEnrolledError, UnauthorizedError } from '../core/errors'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import type { UserRecord } from '../store/auth-store'
import { acceptTotpCode, recoveryCodesOf, stepOfCode } from './accept-code'
import { findReplacement, irreversibilityOfFirst, type Replacement } from './enrolment'
import { openSecret, sealPlain } from './secret-box'

/** A factor that was begun and waits for its first code. */
export interface PendingFactor {
  /** The locked row before the activation. */
  readonly user: UserRecord
  /** The encrypted secret. */
  readonly secret: string
  /** The factor that replaces the active factor. Null if the account has no active factor. */
  readonly replacement: Replacement | null
  /** If not false, an undo link cannot remove the factor (`Irreversibility`). */
  readonly isFinal: Irreversibility
}

/**
 * Locks the user's row and returns its pending factor.
 * @throws UnauthorizedError, MfaNotEnrolledError (nothing is pending)
 */
export async function lockPendingFactor(ctx: AuthContext, userId: string): Promise<PendingFactor> {
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  const replacement = user.totpEnabledAt ? await findReplacement(ctx, userId) : null
  const secret = user.totpEnabledAt ? replacement?.secret : user.totpSecret
  if (!secret) throw new MfaNotEnrolledError()
  const isFinal = replacement ? replacement.isFinal : await irreversibilityOfFirst(ctx, userId, secret)
  return { user, secret, replacement, isFinal }
}

/** Returns true if the secret belongs to the pending factor. A later enrolment replaces the secret. */
export async function isPendingSecret(ctx: AuthContext, user: UserRecord, secret: string): Promise<boolean> {
  const pending = user.totpEnabledAt ? (await findReplacement(ctx, user.id))?.secret : user.totpSecret
  return Boolean(pending) && openSecret(ctx.mfaSecretKeys, user.id, pending ?? '') === secret
}

/**
 * Activates the pending factor with its first code. The caller has locked the user's row, so no other secret can become active in between.
 * @throws MfaCodeInvalidError
 */
export async function activateFactor(ctx: AuthContext, { user, replacement }: PendingFactor, code: string): Promise<UserRecord> {
  const now = ctx.now()
  const changes = { totpEnabledAt: now, updatedAt: now, ...(replacement ? acceptedIn(ctx, user, replacement, code) : {}) }
  if (!replacement && !(await acceptTotpCode(ctx, user, code))) throw new MfaCodeInvalidError()
  await ctx.store.users.update(user.id, changes)
  if (replacement) await recoveryCodesOf(ctx).replaceForUser(user.id, replacement.recoveryCodes)
  return { ...user, ...changes }
}

/** Returns the user's columns for a replacement. The columns store the code's time step, so that nobody can use the code again. */
function acceptedIn(ctx: AuthContext, user: UserRecord, { secret }: Replacement, code: string) {
  const step = stepOfCode(ctx, { id: user.id, totpSecret: secret }, code)
  if (step === null) throw new MfaCodeInvalidError()
  return { totpSecret: sealPlain(ctx.mfaSecretKeys, user.id, secret), totpLastStep: step }
}
