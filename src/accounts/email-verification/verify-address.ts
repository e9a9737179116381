import type { AuthContext } from '../../context'
import type { UserChanges, UserRecord } from '../../store/auth-store'
import { type Clearing, type TakenOver, takeOver, tellHostOfTakeOver } from '../take-over'
import { isSignupOwnership, type VerifiedSignupOwnership } from './signup-ownership'

export interface AddressProof {
  /** The row after the verification. */
  readonly user: UserRecord
  /** Null if the evidence identified the owner, or if the address was already verified. */
  readonly takenOver: TakenOver | null
}

export interface ProofOptions {
  /** True if this verification activates the account for the first time. */
  readonly isActivation?: boolean
  /** The sign-up that the mailed link belongs to. */
  readonly signup?: string | null
  /** True if the link alone identifies the person who signed up. */
  readonly trustsLink?: boolean
  readonly clearing?: Clearing
  /** Additional changes of the user's row. */
  readonly changes?: UserChanges
}

/**
 * Returns true if this is the first verification of the address. Without the column `emailVerifiedAt`, only an activation counts as the
 * first verification.
 */
export function isFirstVerification({ store }: Pick<AuthContext, 'store'>, user: UserRecord, isActivation = false): boolean {
  return store.users.fields.has('emailVerifiedAt') ? user.emailVerifiedAt === null : isActivation
}

/**
 * Marks an address as verified. Every kind of verification calls this function. If the evidence does not identify the owner, the first
 * verification takes the account over (`takeOver`). A later verification removes nothing. Call the function inside a transaction that has
 * locked the user's row.
 */
export async function verifyAddress(
  ctx: AuthContext,
  user: UserRecord,
  evidence: VerifiedSignupOwnership,
  { isActivation = false, signup = null, trustsLink = false, clearing = 'nothing', changes = {} }: ProofOptions = {},
): Promise<AddressProof> {
  const now = ctx.now()
  const isSafe = !isFirstVerification(ctx, user, isActivation) || trustsLink || (await isSignupOwnership(ctx, user, evidence, signup))
  const takenOver = isSafe ? null : await takeOver(ctx, user, clearing)
  const written: UserChanges = { ...takenOver?.changes, ...changes, emailVerifiedAt: now, updatedAt: now }
  await ctx.store.users.update(user.id, written)
  // Sets `fields` only if the store has fields.
  const proven = { ...user, ...written, ...(user.fields && { fields: { ...user.fields, ...written.fields } }) } as UserRecord
  if (takenOver) await tellHostOfTakeOver(ctx, proven)
  return { user: proven, takenOver }
}
