import type { AuthContext } from '../context'
import type { UserChanges, UserRecord } from '../store/auth-store'
import { isEvidence, type WeighedEvidence } from './evidence'
import { type Clearing, type TakenOver, takeOver, tellHostOfTakeOver } from './take-over'

export interface AddressProof {
  /** The row after the verification. */
  readonly user: UserRecord
  /** Null if there was evidence of the owner, or if the address was verified before. */
  readonly takenOver: TakenOver | null
}

export interface ProofOptions {
  /** True if this verification activates the account for the first time. */
  readonly isActivation?: boolean
  /** The sign-up that the mailed link belongs to. */
  readonly signup?: string | null
  /** True if the link itself identifies the person who signed up. */
  readonly trustsLink?: boolean
  readonly clearing?: Clearing
  /** Further changes of the user's row. */
  readonly changes?: UserChanges
}

/**
 * True if this is the first verification of the address. Without the column `emailVerifiedAt`, only an activation counts as the first one.
 */
export function isFirstProof({ store }: Pick<AuthContext, 'store'>, user: UserRecord, isActivation = false): boolean {
  return store.users.fields.has('emailVerifiedAt') ? user.emailVerifiedAt === null : isActivation
}

/**
 * Verifies an address, for every kind of verification. The first verification takes the account over, unless the request has evidence of
 * the owner. A later one removes nothing. Runs inside a transaction that has locked the user's row.
 */
export async function proveAddress(
  ctx: AuthContext,
  user: UserRecord,
  evidence: WeighedEvidence,
  { isActivation = false, signup = null, trustsLink = false, clearing = 'nothing', changes = {} }: ProofOptions = {},
): Promise<AddressProof> {
  const now = ctx.now()
  const isSafe = !isFirstProof(ctx, user, isActivation) || trustsLink || (await isEvidence(ctx, user, evidence, signup))
  const takenOver = isSafe ? null : await takeOver(ctx, user, clearing)
  const written: UserChanges = { ...takenOver?.changes, ...changes, emailVerifiedAt: now, updatedAt: now }
  await ctx.store.users.update(user.id, written)
  // `fields` only if the store has some.
  const proven = { ...user, ...written, ...(user.fields && { fields: { ...user.fields, ...written.fields } }) } as UserRecord
  if (takenOver) await tellHostOfTakeOver(ctx, proven)
  return { user: proven, takenOver }
}
