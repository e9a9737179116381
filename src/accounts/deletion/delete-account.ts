import { type ActingAdmin, actorOf, lockTarget, recordTrace } from '../../admin/change-user'
import { type AuthContext, transaction } from '../../context'
import { AccountInactiveError, ConfigurationError, ConflictError, NotFoundError, UnauthorizedError } from '../../core/errors'
import type { Locale } from '../../http/locale'
import { beginChange } from '../../rate-limits/rate-limiter'
import { endOtherSessions } from '../../sessions/log-out'
import { holdSession } from '../../sessions/reauthentication/fresh-session'
import { deletesAt } from '../../sessions/state-refusal'
import { ReferencedRecordError, type SessionRecord, type UserDeletion, type UserRecord } from '../../store/auth-store'
import { transactionOf } from '../../store/knex/knex-store'
import { issueLink, type LinkToken } from '../email-links/email-link'
import { endOneShots } from '../email-links/issue-email-login'
import { reserveNotice } from '../email-links/send-mail'
import { openPoints } from '../undo/announce-change'

interface OwnDeletion {
  readonly user: UserRecord
  /** Of the request. Null if the store keeps no sessions. */
  readonly session: SessionRecord | null
  readonly locale: Locale
}

/** Nobody can hold an address for the days that nobody has verified. */
export function isImmediate({ settings }: Pick<AuthContext, 'settings'>, user: Pick<UserRecord, 'emailVerifiedAt'>): boolean {
  return settings.accountDeletion === 'immediate' || user.emailVerifiedAt === null
}

/**
 * The person asks. With `soft`, the account closes and is deleted later; otherwise it is gone at once (null).
 * @throws ConflictError for the last administrator, and if a row of the host refers to the account; TooManyRequestsError after ten changes
 * in a day; ServiceUnavailableError if no mail can be queued; what `onDelete` throws
 */
export async function deleteOwnAccount(ctx: AuthContext, { user, session, locale }: OwnDeletion): Promise<Date | null> {
  const counted = await beginChange(ctx, user)
  try {
    if (!isImmediate(ctx, user)) return await closeAccount(ctx, { user, session, locale })
    await deleting(ctx, user.id, async (ctx) => {
      const locked = await lockOwn(ctx, { user, session })
      if (!isImmediate(ctx, locked)) throw new ConflictError() // somebody verified the address meanwhile, so the person gets the days
      await deleteWithRows(ctx, locked, { keepsInvitations: locked.emailVerifiedAt === null })
    })
    return null
  } catch (error) {
    await counted.release()
    throw error
  }
}

/** At once, whatever the setting says. @throws NotFoundError, ForbiddenError, ConflictError; what `onDelete` throws */
export async function deleteUser(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  await deleting(ctx, userId, async (ctx) => {
    if (!acting) await refuseLastAdmin(ctx, userId)
    await deleteWithRows(ctx, await lockTarget(ctx, userId, acting, { takesPower: true }), { acting })
  })
}

/** Ends the sessions and every other way in, and mails the way back. */
async function closeAccount(ctx: AuthContext, own: OwnDeletion): Promise<Date> {
  const place = reserveNotice(ctx)
  try {
    const { closed, link } = await transaction(ctx, async (ctx) => {
      const user = await lockOwn(ctx, own)
      if (isImmediate(ctx, user)) throw new ConflictError() // the address changed meanwhile
      const now = ctx.now()
      const changes = { isActive: false, activatedAt: user.activatedAt ?? now, deletionRequestedAt: now, updatedAt: now }
      await ctx.store.users.update(user.id, changes)
      await endOneShots(ctx, user)
      await recordTrace(ctx, user)
      await endOtherSessions(ctx, user.id)
      ctx.events.emit('account.deletion_requested', { userId: user.id })
      const link: LinkToken = await issueLink(ctx, user.id, 'ACCOUNT_DELETION')
      return { closed: { ...user, ...changes }, link }
    })
    place.mail(closed, 'account_deletion', { link, locale: own.locale })
    return deletesAt(ctx, closed)
  } finally {
    place.release()
  }
}

/** All active administrators first, so that of the last two at once one stays. */
async function lockOwn(ctx: AuthContext, { user, session }: Pick<OwnDeletion, 'user' | 'session'>): Promise<UserRecord> {
  await refuseLastAdmin(ctx, user.id)
  const locked = await ctx.store.users.lock(user.id)
  if (!locked) throw new UnauthorizedError()
  if (!locked.isActive) throw new AccountInactiveError()
  await holdSession(ctx, session)
  return locked
}

async function refuseLastAdmin(ctx: AuthContext, userId: string): Promise<void> {
  const [first, ...others] = await ctx.store.users.lockAdmins()
  if (first?.id === userId && others.length === 0) throw new ConflictError()
}

interface Deleting {
  readonly acting?: ActingAdmin | undefined
  /** The invitations for the address stay: nobody has verified that it is the person's. */
  readonly keepsInvitations?: boolean
  /** A due deletion: only if the account still waits since this time or earlier. */
  readonly requestedBy?: Date
}

/** Call it inside `deleting`, with the row locked. @throws NotFoundError if the account is not meant any more */
export async function deleteWithRows(
  ctx: AuthContext,
  user: UserRecord,
  { acting, keepsInvitations = false, ...condition }: Deleting,
): Promise<void> {
  await ctx.onDelete?.(user, ctx.store, { trx: transactionOf(ctx.store) })
  const addresses = await addressesOf(ctx, user)
  await endOtherSessions(ctx, user.id, {}, { reason: 'account_changed', ...actorOf(acting) }) // tells the guards of this process too
  const invited = keepsInvitations ? [] : addresses
  const deletion: UserDeletion = { id: user.id, addresses, invited, at: ctx.now(), ...condition }
  if (!(await deletionsOf(ctx)(deletion))) throw new NotFoundError()
  ctx.events.emit('account.deleted', { userId: user.id, ...actorOf(acting) })
}

/** The address, and earlier ones of which an undo link is left, unless another account has one by now. */
async function addressesOf(ctx: AuthContext, { id, email }: UserRecord): Promise<string[]> {
  const earlier = new Set((await openPoints(ctx, id)).map((point) => point.email))
  const free: string[] = []
  for (const address of earlier) {
    if (address !== email && (await ctx.store.users.findByEmail(address)) === null) free.push(address)
  }
  return [email, ...free]
}

function deletionsOf({ store: { users } }: AuthContext): (deletion: UserDeletion) => Promise<boolean> {
  if (users.delete) return async (deletion) => (await users.delete?.(deletion)) === true
  throw new ConfigurationError('The store cannot delete an account: its `users` have no delete(); storeContract() tests what it must do.')
}

/** @throws ConflictError if a foreign key of another table refers to the account; the log names the table */
export async function deleting<T>(ctx: AuthContext, userId: string, work: (ctx: AuthContext) => Promise<T>): Promise<T> {
  try {
    return await transaction(ctx, work)
  } catch (error) {
    if (!(error instanceof ReferencedRecordError)) throw error
    ctx.logger.warn(
      { userId, table: error.table },
      'doorward: an account was not deleted, because a row of another table refers to it. Delete such rows in onDelete, or let the foreign key cascade',
    )
    throw new ConflictError({ cause: error })
  }
}
