import type { AuthContext } from '../context'
import type { UserChanges, UserRecord } from '../store/auth-store'
import { isEvidence, type WeighedEvidence } from './evidence'
import { type Clearing, type TakenOver, takeOver, tellHostOfTakeOver } from './take-over'

export interface AddressProof {
  /** The row as it is now. */
  readonly user: UserRecord
  /** Null: there was evidence of the owner, or the address was verified before. */
  readonly takenOver: TakenOver | null
}

export interface ProofOptions {
  /** The account becomes active by it, for the first time. */
  readonly isActivation?: boolean
  /** The signup that the mailed link belongs to. */
  readonly signup?: string | null
  /** True: the link itself stands for the person who signed up. */
  readonly trustsLink?: boolean
  readonly clearing?: Clearing
  /** What the proof brings about besides. */
  readonly changes?: UserChanges
}

/** Without the column `emailVerifiedAt`, only an activation counts as the first verification. */
export function isFirstProof({ store }: Pick<AuthContext, 'store'>, user: UserRecord, isActivation = false): boolean {
  return store.users.fields.has('emailVerifiedAt') ? user.emailVerifiedAt === null : isActivation
}

/**
 * Verifies an address, for every kind of verification. The first one takes the account over, unless the request has evidence of the owner.
 * A later one removes nothing. Runs inside a transaction that has locked the user's row.
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
  const proven = { ...user, ...written, ...(user.fields && { fields: { ...user.fields, ...written.fields } }) } as UserRecord // fields only where the store has some
  if (takenOver) await tellHostOfTakeOver(ctx, proven)
  return { user: proven, takenOver }
}
