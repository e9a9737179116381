import type { AuthContext } from '../../context'
import type { Locale } from '../../http/locale'
import type { NoticeTopic } from '../../mail/compose'
import { beginChange } from '../../rate-limits/rate-limiter'
import type { Irreversibility } from '../../sessions/reauthentication/irreversible-change'
import type { UserRecord, UserTokenRecord } from '../../store/auth-store'
import { issueLink, type LinkToken, leadsSomewhere } from '../email-links/email-link'
import { reserveNotice } from '../email-links/send-mail'

interface ChangeNotice {
  readonly topic: UndoableChange
  /** Language of the notice. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
  /** As in the option `providers`, for topics about identities. */
  readonly provider?: string | undefined
}

interface BeforeChange {
  /** Locked. */
  readonly user: UserRecord
  /** If not false, a factor older than a day confirmed the change, and no undo link can revert it. */
  readonly isFinal?: Irreversibility | undefined
  /** Of the passkey that is added or removed. */
  readonly passkey?: string | undefined
  /** The notice then also reports the use of the recovery code, so no other mail does. */
  readonly usedRecoveryCode?: boolean | undefined
  /** If it differs from the `topic` of the `ChangeNotice`. */
  readonly topic?: UndoableChange | undefined
}

/** Call it inside the transaction of the change. A repeated transaction keeps only the last point: the rollback removes the others. */
export type LeaveUndoPoint = (ctx: AuthContext, before: BeforeChange) => Promise<void>

/**
 * After the commit, notifies the address of before the change. If that is verified, the notice has an undo link, except for a final change.
 * @throws TooManyRequestsError after ten such changes in a day, ServiceUnavailableError if no notice can be queued; nothing has changed
 * then
 * @throws the errors of the change
 */
export async function announceChange<T>(
  ctx: AuthContext,
  userId: string,
  { topic: announced, locale, provider }: ChangeNotice,
  change: (leaveUndoPoint: LeaveUndoPoint) => Promise<T>,
): Promise<T> {
  const counted = await beginChange(ctx, { id: userId })
  const place = await reserveOr(ctx, counted.release)
  const left: Left[] = [] // the last point counts, because a repeated transaction adds another point
  try {
    const result = await change(async (ctx, { user, isFinal = false, passkey, usedRecoveryCode = false, topic = announced }) => {
      const link = await leavePoint(ctx, user, { topic, provider, passkey, isFinal })
      left.push({ user, topic, confirmed: { link, isFinal: isFinal !== false, usedRecoveryCode } })
    })
    const point = left.at(-1)
    if (point) place.mail(point.user, point.topic, { ...point.confirmed, locale, provider })
    else await counted.release() // nothing was changed
    return result
  } catch (error) {
    await counted.release()
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

async function reserveOr(ctx: AuthContext, release: () => Promise<void>) {
  try {
    return reserveNotice(ctx)
  } catch (error) {
    await release()
    throw error
  }
}

/** For the first factor of an account. Short, because in this time the mailbox alone removes the factor. */
const firstFactorUndoSeconds = 48 * 3_600

interface PointOf extends Pick<BeforeChange, 'passkey'> {
  readonly topic: UndoableChange
  readonly provider?: string | null | undefined
  readonly isFinal: Irreversibility
}

/** Null if no link can undo the change. */
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
  // A final change needs a row too, so that a later undo does not revert it. The token of that row is never sent.
  return isFinal ? null : link
}

/** An undo link needs a mailer, a public URL or a template, and `undoSeconds`. */
export function canUndo({ mailQueue, settings }: Pick<AuthContext, 'mailQueue' | 'settings'>): boolean {
  return mailQueue !== null && settings.undoSeconds > 0 && leadsSomewhere(settings, 'UNDO')
}

/** By the link in its notice. The name is the topic of the notice. */
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

/** In the users row. The secret stays encrypted. */
export type FactorState = Pick<UserRecord, 'totpSecret' | 'totpEnabledAt' | 'totpLastStep'>

export const noFactor: FactorState = { totpSecret: null, totpEnabledAt: null, totpLastStep: null }

export type SameFactor = (one: FactorState, other: FactorState) => boolean

/** Just before a change. The payload of an UNDO row. */
interface UndoPoint {
  readonly change: UndoableChange
  /** Verified. Gets the notice. */
  readonly email: string
  readonly factor: FactorState
  /** As in the option `providers`, for a change to identities. */
  readonly provider: string | null
  /** For a change to passkeys. */
  readonly passkey?: string | undefined
  readonly isFinal: Irreversibility
  /** A later change has a higher number. Times can be equal, and the clocks of two processes differ. */
  readonly order: number
}

export interface StoredUndoPoint extends UndoPoint {
  readonly tokenHash: string
  readonly createdAt: Date
}

/** @param user before the change @param earlier the account's open points, read after the account's row was locked */
function pointBefore(
  user: UserRecord,
  change: Pick<UndoPoint, 'change' | 'provider' | 'passkey' | 'isFinal'>,
  earlier: readonly UndoPoint[],
): UndoPoint {
  const factor = user.totpEnabledAt === null ? noFactor : factorOf(user) // an unfinished enrolment does not count as a factor
  return { ...change, email: user.email, factor, order: Math.max(0, ...earlier.map(({ order }) => order)) + 1 }
}

/** Oldest first. */
export async function openPoints({ store, now }: Pick<AuthContext, 'store' | 'now'>, userId: string): Promise<readonly StoredUndoPoint[]> {
  const points = (await store.userTokens.listOpen(userId, 'UNDO', now())).map(readPoint)
  return points.sort((one, other) => one.order - other.order)
}

export function factorOf({ totpSecret, totpEnabledAt, totpLastStep }: UserRecord): FactorState {
  return { totpSecret, totpEnabledAt, totpLastStep }
}

/** Compares decrypted secrets, because different keys may have encrypted them. */
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
