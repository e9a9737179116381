import type { AuthContext } from '../../context'
import type { Locale } from '../../http/locale'
import type { NoticeTopic } from '../../mail/compose'
import { takeChange } from '../../rate-limits/rate-limiter'
import type { Irreversibility } from '../../sessions/reauthentication/irreversible-change'
import type { UserRecord, UserTokenRecord } from '../../store/auth-store'
import { issueLink, type LinkToken, leadsSomewhere } from '../email-links/email-link'
import { reserveNotice } from '../email-links/send-mail'

interface ChangeNotice {
  readonly topic: UndoableChange
  /** Language of the notice. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
  /** The name of the provider in the option `providers`, for topics about identities. */
  readonly provider?: string | undefined
}

/** The facts about a change, before the transaction writes the change. */
interface BeforeChange {
  /** The locked row, before the change. */
  readonly user: UserRecord
  /** If not false, a factor older than a day confirmed the change, and an undo link cannot revert the change. */
  readonly isFinal?: Irreversibility | undefined
  /** The digest of the passkey that is added or removed. */
  readonly passkey?: string | undefined
  /** True if a recovery code confirmed the change. The notice then also reports that the code was used, so no other mail reports it. */
  readonly usedRecoveryCode?: boolean | undefined
  /** The topic of the change, if it differs from the `topic` of the `ChangeNotice`. */
  readonly topic?: UndoableChange | undefined
}

/**
 * Stores an undo point (the state before a change) inside the transaction of the change. If the transaction is repeated, only the last
 * point remains, because the rollback removes the earlier points.
 */
export type LeaveUndoPoint = (ctx: AuthContext, before: BeforeChange) => Promise<void>

/**
 * Runs a change of the ways to log in, and sends the owner a notice after the commit. The notice goes to the address that the account had
 * before the change. If that address is verified, the notice has an undo link. A final change (`Irreversibility`) has no undo link.
 * @throws TooManyRequestsError after ten such changes in a day, ServiceUnavailableError if the notice cannot be queued. In both cases
 * nothing has changed.
 * @throws the errors of the change
 */
export async function announceChange<T>(
  ctx: AuthContext,
  userId: string,
  { topic: announced, locale, provider }: ChangeNotice,
  change: (leaveUndoPoint: LeaveUndoPoint) => Promise<T>,
): Promise<T> {
  const taken = await takeChange(ctx, { id: userId })
  const place = await reserveOr(ctx, taken.giveBack)
  const left: Left[] = [] // the last point counts, because a repeated transaction adds another point
  try {
    const result = await change(async (ctx, { user, isFinal = false, passkey, usedRecoveryCode = false, topic = announced }) => {
      const link = await leavePoint(ctx, user, { topic, provider, passkey, isFinal })
      left.push({ user, topic, confirmed: { link, isFinal: isFinal !== false, usedRecoveryCode } })
    })
    const point = left.at(-1)
    if (point) place.mail(point.user, point.topic, { ...point.confirmed, locale, provider })
    else await taken.giveBack() // nothing was changed
    return result
  } catch (error) {
    await taken.giveBack()
    throw error
  } finally {
    place.release()
  }
}

interface Left {
  readonly user: UserRecord
  readonly topic: UndoableChange
  readonly confirmed: { readonly link: LinkToken | null; readonly isFinal: boolean; readonly usedRecoveryCode: boolean }
}

async function reserveOr(ctx: AuthContext, giveBack: () => Promise<void>) {
  try {
    return reserveNotice(ctx)
  } catch (error) {
    await giveBack()
    throw error
  }
}

/**
 * The longest lifetime of the link that removes the factor of an account that had no factor. It is short, because in this time the mailbox
 * alone removes the factor.
 */
const firstFactorUndoSeconds = 48 * 3_600

interface PointOf extends Pick<BeforeChange, 'passkey'> {
  readonly topic: UndoableChange
  readonly provider?: string | null | undefined
  readonly isFinal: Irreversibility
}

/** Stores the undo point and returns its link. Returns null if no link can undo the change. */
async function leavePoint(
  ctx: AuthContext,
  user: UserRecord,
  { topic, provider = null, passkey, isFinal }: PointOf,
): Promise<LinkToken | null> {
  if (!canUndo(ctx) || user.emailVerifiedAt === null) return null
  const point = pointBefore(user, { change: topic, provider, passkey, isFinal }, await openPoints(ctx, user.id))
  const { undoSeconds } = ctx.settings
  const isFirstFactor = topic === 'mfa_enabled' && point.factor.totpEnabledAt === null
  const seconds = isFirstFactor ? Math.min(undoSeconds, firstFactorUndoSeconds) : undoSeconds
  const link = await issueLink(ctx, user.id, 'UNDO', writePoint(point), seconds)
  // A final change needs a row too, because a later undo must not revert the change. The token of that row is never sent.
  return isFinal ? null : link
}

/** Returns true if notices can have an undo link. An undo link needs a mailer, a public URL or a template, and `undoSeconds`. */
export function canUndo({ mailQueue, settings }: Pick<AuthContext, 'mailQueue' | 'settings'>): boolean {
  return mailQueue !== null && settings.undoSeconds > 0 && leadsSomewhere(settings, 'UNDO')
}

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
interface UndoPoint {
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
function pointBefore(
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

function writePoint(point: UndoPoint): string {
  return JSON.stringify(point)
}

function readPoint({ tokenHash, createdAt, payload }: UserTokenRecord): StoredUndoPoint {
  const point = JSON.parse(payload ?? '') as UndoPoint // only `writePoint` writes UNDO rows, so the payload is an undo point
  const { totpSecret, totpEnabledAt, totpLastStep } = point.factor
  const factor = { totpSecret, totpEnabledAt: totpEnabledAt && new Date(totpEnabledAt), totpLastStep }
  return { ...point, factor, tokenHash, createdAt }
}
