import type { AuthContext } from '../../context'
import type { NoticeTopic } from '../../mail/topics'
import type { Irreversibility } from '../../sessions/reauthentication/irreversible-change'
import type { UserRecord, UserTokenRecord } from '../../store/auth-store'

/** A change that the link in its notice can undo. The name is the topic of the notice. */
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

/** The second factor in the users row. The secret stays encrypted. */
export type FactorState = Pick<UserRecord, 'totpSecret' | 'totpEnabledAt' | 'totpLastStep'>

export const noFactor: FactorState = { totpSecret: null, totpEnabledAt: null, totpLastStep: null }

/** Returns true if two states have the same factor, or no factor. */
export type SameFactor = (one: FactorState, other: FactorState) => boolean

/** The state of an account just before a change. The state is the payload of an UNDO row. */
export interface UndoPoint {
  readonly change: UndoableChange
  /** The verified address that gets the notice. */
  readonly email: string
  readonly factor: FactorState
  /** The name of the provider in the option `providers`, for a change to identities. */
  readonly provider: string | null
  /** The digest of the passkey, for a change to passkeys. Left out for other changes. */
  readonly passkey?: string | undefined
  readonly isFinal: Irreversibility
  /**
   * The number of the point. A later change has a higher number. Times cannot order the changes, because two changes can have equal times,
   * and the clocks of two processes differ.
   */
  readonly order: number
}

/** An UNDO row of an account. */
export interface StoredUndoPoint extends UndoPoint {
  readonly tokenHash: string
  readonly createdAt: Date
}

/**
 * Returns the undo point of a change.
 * @param user the user's row before the change
 * @param earlier the account's open points, read after the account's row was locked
 */
export function pointBefore(
  user: UserRecord,
  change: Pick<UndoPoint, 'change' | 'provider' | 'passkey' | 'isFinal'>,
  earlier: readonly UndoPoint[],
): UndoPoint {
  const factor = user.totpEnabledAt === null ? noFactor : factorOf(user) // an unfinished enrolment does not count as a factor
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

/** Compares decrypted secrets, because a later key, or the first key, may have encrypted one of them. */
export function sameFactorOf({ isSameTotpSecret }: Pick<AuthContext, 'isSameTotpSecret'>, userId: string): SameFactor {
  return (one, other) =>
    one.totpEnabledAt?.getTime() === other.totpEnabledAt?.getTime() && isSameTotpSecret(userId, one.totpSecret, other.totpSecret)
}

export function writePoint(point: UndoPoint): string {
  return JSON.stringify(point)
}

function readPoint({ tokenHash, createdAt, payload }: UserTokenRecord): StoredUndoPoint {
  const point = JSON.parse(payload ?? '') as UndoPoint // only `writePoint` writes UNDO rows, so the payload is an undo point
  const { totpSecret, totpEnabledAt, totpLastStep } = point.factor
  const factor = { totpSecret, totpEnabledAt: totpEnabledAt && new Date(totpEnabledAt), totpLastStep }
  return { ...point, factor, tokenHash, createdAt }
}
