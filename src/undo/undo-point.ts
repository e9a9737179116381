import type { AuthContext } from '../context'
import type { NoticeTopic } from '../mail/topics'
import type { Finality } from '../step-up/finality'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'

/** A change that its notice can undo, named by the topic of the notice. */
export type UndoableChange = Extract<
  NoticeTopic,
  | 'password_changed'
  | 'email_changed'
  | 'identity_linked'
  | 'identity_unlinked'
  | 'mfa_enabled'
  | 'mfa_replaced'
  | 'mfa_disabled'
  | 'recovery_codes_regenerated'
  | 'passkey_added'
  | 'passkey_removed'
>

/** The second factor as the users row stores it; the secret stays encrypted. */
export type FactorState = Pick<UserRecord, 'totpSecret' | 'totpEnabledAt' | 'totpLastStep'>

export const noFactor: FactorState = { totpSecret: null, totpEnabledAt: null, totpLastStep: null }

/** The state of an account just before a change. It is the payload of an UNDO row. */
export interface UndoPoint {
  readonly change: UndoableChange
  /** The verified address of the notice. */
  readonly email: string
  readonly factor: FactorState
  /** The provider of a change to identities, by its registration key. */
  readonly provider: string | null
  /** Digest of the passkey of a change to passkeys. Left out for other changes. */
  readonly passkey?: string | undefined
  readonly isFinal: Finality
  /**
   * Later changes have higher numbers. Times do not order them, because two changes can have the same time, and clocks of two processes
   * differ.
   */
  readonly order: number
}

/** One UNDO row of an account. */
export interface StoredUndoPoint extends UndoPoint {
  readonly tokenHash: string
  readonly createdAt: Date
}

/**
 * Returns the undo point of a change, for the row as it is before the change.
 * @param earlier the account's open points, read after its row was locked
 */
export function pointBefore(
  user: UserRecord,
  change: Pick<UndoPoint, 'change' | 'provider' | 'passkey' | 'isFinal'>,
  earlier: readonly UndoPoint[],
): UndoPoint {
  const factor = user.totpEnabledAt === null ? noFactor : factorOf(user) // an unfinished enrolment is no factor
  return { ...change, email: user.email, factor, order: Math.max(0, ...earlier.map(({ order }) => order)) + 1 }
}

/** Returns the account's open points, oldest first. */
export async function openPoints({ store, now }: Pick<AuthContext, 'store' | 'now'>, userId: string): Promise<readonly StoredUndoPoint[]> {
  const points = (await store.userTokens.listOpen(userId, 'UNDO', now())).map(readPoint)
  return points.sort((one, other) => one.order - other.order)
}

export function factorOf({ totpSecret, totpEnabledAt, totpLastStep }: UserRecord): FactorState {
  return { totpSecret, totpEnabledAt, totpLastStep }
}

export function writePoint(point: UndoPoint): string {
  return JSON.stringify(point)
}

function readPoint({ tokenHash, createdAt, payload }: UserTokenRecord): StoredUndoPoint {
  const point = JSON.parse(payload ?? '') as UndoPoint // a row of ours: only `writePoint` writes UNDO rows
  const { totpSecret, totpEnabledAt, totpLastStep } = point.factor
  const factor = { totpSecret, totpEnabledAt: totpEnabledAt && new Date(totpEnabledAt), totpLastStep }
  return { ...point, factor, tokenHash, createdAt }
}
