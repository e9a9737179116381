import type { AuthContext } from '../context'
import type { Locale } from '../http/locale'
import { takeChange } from '../limits/take-change'
import { issueLink, type LinkToken, leadsSomewhere } from '../mailbox/email-link'
import { reserveNotice } from '../mailbox/send-mail'
import type { Finality } from '../step-up/finality'
import type { UserRecord } from '../store/auth-store'
import { openPoints, pointBefore, type UndoableChange, writePoint } from './undo-point'

export interface ChangeNotice {
  readonly topic: UndoableChange
  /** Of the notice. Default: `defaultLocale`. */
  readonly locale?: Locale | undefined
  /** The registration key, for the topics about identities. */
  readonly provider?: string | undefined
}

/** What the change's unit of work says of it, before it writes anything else. */
export interface BeforeChange {
  /** The locked row, as it is before the change. */
  readonly user: UserRecord
  /** The request showed a factor that is older than a day: no link undoes the change (contract 24.6). */
  readonly isFinal?: Finality | undefined
  /** The passkey that is added or removed, by its digest. */
  readonly passkey?: string | undefined
  /** A recovery code confirmed it. The notice says so, and there is no mail of its own about the code. */
  readonly usedRecoveryCode?: boolean | undefined
  /** Where the change turned out to be another one than announced. */
  readonly topic?: UndoableChange | undefined
}

/** Call it inside the change's unit of work: a repeated unit leaves one point, because the earlier ones are rolled back. */
export type LeaveUndoPoint = (ctx: AuthContext, before: BeforeChange) => Promise<void>

/**
 * Changes how a person signs in, and sends the owner a notice after the commit. The notice goes to the address that the account had
 * before. If that address is verified, the notice has an undo link.
 * @throws TooManyRequestsError after ten such changes in a day, ServiceUnavailableError when the notice cannot be queued; nothing has
 *   changed then. And what the change throws
 */
export async function announceChange<T>(
  ctx: AuthContext,
  userId: string,
  { topic: announced, locale, provider }: ChangeNotice,
  change: (leaveUndoPoint: LeaveUndoPoint) => Promise<T>,
): Promise<T> {
  const taken = await takeChange(ctx, { id: userId })
  const place = await reserveOr(ctx, taken.giveBack)
  const left: Left[] = [] // the last one counts: a repeated unit leaves its point again
  try {
    const result = await change(async (ctx, { user, isFinal = false, passkey, usedRecoveryCode = false, topic = announced }) => {
      const link = await leavePoint(ctx, user, { topic, provider, passkey, isFinal })
      left.push({ user, topic, confirmed: { link, isFinal: isFinal !== false, usedRecoveryCode } })
    })
    const point = left.at(-1)
    if (point) place.mail(point.user, point.topic, { ...point.confirmed, locale, provider })
    else await taken.giveBack() // there was nothing to change
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

interface PointOf extends Pick<BeforeChange, 'passkey'> {
  readonly topic: UndoableChange
  readonly provider?: string | null | undefined
  readonly isFinal: Finality
}

/** Null: no link undoes this change. */
async function leavePoint(
  ctx: AuthContext,
  user: UserRecord,
  { topic, provider = null, passkey, isFinal }: PointOf,
): Promise<LinkToken | null> {
  if (!canUndo(ctx) || user.emailVerifiedAt === null) return null
  const point = pointBefore(user, { change: topic, provider, passkey, isFinal }, await openPoints(ctx, user.id))
  const link = await issueLink(ctx, user.id, 'UNDO', writePoint(point))
  // The row of a final change tells a later undo what to leave alone. Nobody learns its token.
  return isFinal ? null : link
}

/** Without a mailer nobody gets a link, and without a public address there is none. */
export function canUndo({ postman, settings }: Pick<AuthContext, 'postman' | 'settings'>): boolean {
  return postman !== null && settings.undoSeconds > 0 && leadsSomewhere(settings, 'UNDO')
}
