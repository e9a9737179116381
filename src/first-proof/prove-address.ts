import type { AuthContext } from '../context'
import type { UserChanges, UserRecord } from '../store/auth-store'
import { isEvidence, type WeighedEvidence } from './evidence'
import { type Clearing, type TakenOver, takeOver, tellHostOfTakeOver } from './take-over'

export interface AddressProof {
  /** The row as it is now. */
  readonly user: UserRecord
  /** Null: the owner was in already, or the address was proven before. */
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

/** Where the users table does not say when an address was proven, only an activation is known to be the first proof. */
export function isFirstProof({ store }: Pick<AuthContext, 'store'>, user: UserRecord, isActivation = false): boolean {
  return store.users.fields.has('emailVerifiedAt') ? user.emailVerifiedAt === null : isActivation
}

/**
 * The one rule of every way to prove an address: the first proof takes the account over, unless something in the request tells that
 * the owner of the address is already in. A later proof removes nothing. Inside a transaction that has locked the user's row.
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
