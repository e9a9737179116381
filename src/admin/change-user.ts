import { userBody, userSchema } from '../accounts/account-routes'
import { endOneShots } from '../accounts/email-links/issue-email-login'
import { mailNotice } from '../accounts/email-links/send-mail'
import { removePasskeys } from '../accounts/take-over'
import { type AuthContext, transaction } from '../context'
import { ConflictError, ForbiddenError, NotFoundError, ValidationError } from '../core/errors'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import { instantOrNull, type JsonSchema } from '../http/description'
import { beginChange } from '../rate-limits/rate-limiter'
import { forgetWrongCodes } from '../second-factor/code-limits'
import { isLeaving, isWaiting } from '../sessions/account-state'
import { endOtherSessions } from '../sessions/log-out'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { SessionRecord, UserChanges, UserRecord } from '../store/auth-store'
import { type PublicUser, toPublicUser } from '../store/user-records'

export interface UserUpdate {
  /** At most 120 characters. An empty name is stored as null. */
  name?: string | null | undefined
  isAdmin?: boolean | undefined
}

/**
 * An administrator changes rights at most ten times a day, which alone limits the notices.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError, ValidationError, TooManyRequestsError
 */
export async function updateUser(
  ctx: AuthContext,
  userId: string,
  { name, isAdmin }: UserUpdate,
  acting?: ActingAdmin,
): Promise<AdminUser> {
  if (isAdmin !== undefined && typeof isAdmin !== 'boolean') throw new TypeError('isAdmin must be true or false.')
  if (typeof name === 'string' && name.length > 120)
    throw new ValidationError({ details: { errors: [{ path: 'name', rule: 'string.max' }] } })
  const changes = { ...(name !== undefined && { name: name || null }), ...(isAdmin !== undefined && { isAdmin }) }
  const counted = isAdmin === undefined || !acting ? null : await beginChange(ctx, { id: acting.by })
  try {
    const { updated, change } = await transaction(ctx, (ctx) => update(ctx, userId, changes, acting))
    if (change) announceAdmin(ctx, change, acting?.by ?? null)
    else await counted?.release()
    return toAdminUser(updated)
  } catch (error) {
    await counted?.release()
    throw error
  }
}

async function update(
  ctx: AuthContext,
  userId: string,
  changes: Pick<UserChanges, 'name' | 'isAdmin'>,
  acting?: ActingAdmin,
): Promise<{ updated: UserRecord; change: AdminChange | null }> {
  const { isAdmin } = changes
  const user = await lockTarget(ctx, userId, acting, { takesPower: isAdmin === false })
  // An administrator cannot make an inactive account an administrator. The host itself can.
  if (isAdmin === true && acting && !user.isActive) throw new ConflictError()
  if (Object.keys(changes).length === 0) return { updated: user, change: null }
  await ctx.store.users.update(userId, { ...changes, updatedAt: ctx.now() })
  const updated = (await ctx.store.users.lock(userId)) ?? user // the row is read again, because the table may have no column for a change
  if (updated.isAdmin === user.isAdmin) return { updated, change: null }
  const who = { userId, actorId: acting?.by ?? null }
  if (updated.isAdmin) ctx.events.emit('admin.granted', who)
  else ctx.events.emit('admin.revoked', who)
  return { updated, change: { user: updated, isAdmin: updated.isAdmin, admins: await ctx.store.users.lockAdmins() } }
}

/**
 * `emailVerifiedAt` stays unchanged, and revoked sessions and links stay revoked. If a host only cleared `is_active` in the table, the
 * account still has valid ones, which this revokes too. @throws NotFoundError, ForbiddenError
 */
export async function activateUser(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  const closed = await transaction(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await lockTarget(ctx, userId, acting)
    if (user.isActive) return null
    await ctx.store.users.update(userId, { isActive: true, activatedAt: now, ...notWaiting(user), ...notLeaving(user), updatedAt: now })
    await ctx.store.userTokens.consumeAllForUser(userId, now)
    await recordTrace(ctx, user)
    await endOtherSessions(ctx, userId, {}, { reason: 'account_changed', ...actorOf(acting) })
    ctx.events.emit('activation', { userId, ...actorOf(acting) })
    if (isWaiting(user)) emitDecision(ctx, userId, true, acting)
    if (isLeaving(user)) ctx.events.emit('account.deletion_cancelled', { userId, ...actorOf(acting) })
    return user
  })
  if (closed && isWaiting(closed)) mailNotice(ctx, closed, 'approval_granted')
}

/** The account keeps its links and its time of activation. @throws NotFoundError, ForbiddenError, ConflictError if it does not wait */
export async function approve(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  mailNotice(ctx, await decide(ctx, userId, true, acting), 'approval_granted')
}

/** The account stays deactivated. @throws NotFoundError, ForbiddenError, ConflictError if it does not wait */
export async function decline(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  mailNotice(ctx, await decide(ctx, userId, false, acting), 'approval_declined')
}

function decide(ctx: AuthContext, userId: string, isActive: boolean, acting: ActingAdmin | undefined): Promise<UserRecord> {
  return transaction(ctx, async (ctx) => {
    const user = await lockTarget(ctx, userId, acting)
    if (!isWaiting(user)) throw new ConflictError()
    await ctx.store.users.update(userId, { isActive, ...notWaiting(user), updatedAt: ctx.now() })
    if (isActive) ctx.events.emit('activation', { userId, ...actorOf(acting) })
    emitDecision(ctx, userId, isActive, acting)
    return user
  })
}

/** No write to a table without the column. */
function notWaiting(user: UserRecord): Pick<UserChanges, 'approvalRequestedAt'> {
  return user.approvalRequestedAt ? { approvalRequestedAt: null } : {}
}

/** Every way back of the account ends with its request. */
function notLeaving(user: UserRecord): Pick<UserChanges, 'deletionRequestedAt'> {
  return user.deletionRequestedAt ? { deletionRequestedAt: null } : {}
}

function emitDecision(ctx: AuthContext, userId: string, isGranted: boolean, acting: ActingAdmin | undefined): void {
  const who = { userId, ...actorOf(acting) }
  if (isGranted) ctx.events.emit('approval.granted', who)
  else ctx.events.emit('approval.declined', who)
}

/** Also revokes pending second-factor steps and mailed links. @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError */
export async function deactivate(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<void> {
  await transaction(ctx, async (ctx) => {
    const now = ctx.now()
    const user = await lockTarget(ctx, userId, acting, { takesPower: true })
    const ended = { ...notWaiting(user), ...notLeaving(user) }
    await ctx.store.users.update(userId, { isActive: false, activatedAt: user.activatedAt ?? now, ...ended, updatedAt: now })
    await endOneShots(ctx, user)
    await recordTrace(ctx, user)
    await endOtherSessions(ctx, userId, {}, { reason: 'account_changed', ...actorOf(acting) })
    if (isLeaving(user)) ctx.events.emit('account.deletion_cancelled', { userId, ...actorOf(acting) })
    ctx.events.emit('account.deactivated', { userId, ...actorOf(acting) })
  })
}

export interface MfaReset {
  /** Also removes the account's passkeys. Use it if the owner lost them, or if an attacker added some. Default false. */
  passkeys?: boolean | undefined
}

/**
 * Works even if `mfaEnabled` is off. Unfinished second-factor logins and provider links become invalid (`accountDigest`). If nothing was
 * removed, revokes nothing, and only deletes an unfinished enrolment.
 * @throws NotFoundError, ConflictError (`lockTarget`), ForbiddenError
 */
export async function resetMfa(
  ctx: AuthContext,
  userId: string,
  acting?: ActingAdmin,
  { passkeys: takesPasskeys = false }: MfaReset = {},
): Promise<void> {
  const { user, hadFactor, removed } = await transaction(ctx, async (ctx) => {
    const user = await lockTarget(ctx, userId, acting, { takesPower: true })
    const hadFactor = user.totpEnabledAt !== null
    if (hadFactor || user.totpSecret !== null)
      await ctx.store.users.update(userId, { totpSecret: null, totpEnabledAt: null, totpLastStep: null, updatedAt: ctx.now() })
    await ctx.store.recoveryCodes?.deleteForUser(userId)
    const removed = takesPasskeys ? await removePasskeys(ctx, userId) : []
    if (hadFactor || removed.length > 0) await endOtherSessions(ctx, userId, {}, { reason: 'account_changed', ...actorOf(acting) })
    if (hadFactor) ctx.events.emit('mfa.disabled', { userId, ...actorOf(acting) })
    for (const passkeyId of removed) ctx.events.emit('passkey.removed', { userId, passkeyId, ...actorOf(acting) })
    return { user, hadFactor, removed }
  })
  await forgetWrongCodes(ctx, userId)
  const removedPasskeys = removed.length > 0
  if (hadFactor) mailNotice(ctx, user, 'mfa_disabled', undefined, { removedPasskeys })
  else if (removedPasskeys) mailNotice(ctx, user, 'passkey_removed')
}

/** Counts the live sessions that were revoked; 0 for an unknown account. @throws NotFoundError, ForbiddenError only if an admin acts */
export async function revokeSessions(ctx: AuthContext, userId: string, acting?: ActingAdmin): Promise<number> {
  const count = await transaction(ctx, async (ctx) => {
    if (!acting) await ctx.store.users.lock(userId)
    else await lockTarget(ctx, userId, acting)
    const living = await ctx.store.sessions?.listForUser(userId, ctx.now())
    await endOtherSessions(ctx, userId, {}, { reason: 'session_ended', ...actorOf(acting) })
    return living?.length ?? 0
  })
  ctx.events.emit('session.revoked', { userId, count, ...actorOf(acting) })
  return count
}

/** The administrator who acts. Left out if the host itself acts. The host itself needs no administrator rights. */
export interface ActingAdmin {
  /** The id of the administrator. */
  by: string
  /** The session of the administrator. If the session has ended, the action fails. */
  session?: SessionRecord | null | undefined
}

/** For an event that the action causes. */
export function actorOf(acting: ActingAdmin | undefined): { actorId?: string } {
  return acting ? { actorId: acting.by } : {}
}

/** A call by an administrator without an id must not count as the host's own call. @throws TypeError */
export function requireNamed(acting: ActingAdmin | undefined): ActingAdmin | undefined {
  if (acting === undefined || typeof acting.by === 'string') return acting
  throw new TypeError('`by` must be the id of the administrator who acts. If your own code acts, omit the argument.')
}

/**
 * Call it first in a transaction. If an administrator acts, first locks all active administrators. So if two act against each other at
 * once, the second sees the change of the first, also across processes.
 * @throws ConflictError with `takesPower`, if the account is the acting administrator or the last active one; ForbiddenError if `by` is not
 * an active administrator; NotFoundError
 */
export async function lockTarget(
  ctx: AuthContext,
  userId: string,
  acting: ActingAdmin | undefined,
  { takesPower = false }: { takesPower?: boolean } = {},
): Promise<UserRecord> {
  if (acting) await lockAdmins(ctx, userId, acting, takesPower)
  const user = await ctx.store.users.lock(userId)
  if (!user) throw new NotFoundError()
  return user
}

async function lockAdmins(ctx: AuthContext, userId: string, { by, session }: ActingAdmin, takesPower: boolean): Promise<void> {
  const ids = (await ctx.store.users.lockAdmins()).map(({ id }) => id)
  const isLast = ids.length === 1 && ids[0] === userId
  if (takesPower && (userId === by || isLast)) throw new ConflictError()
  if (!ids.includes(by)) throw new ForbiddenError()
  await holdSession(ctx, session)
}

export async function findUser(ctx: AuthContext, userId: string): Promise<AdminUser | null> {
  const user = await ctx.store.users.find(userId)
  return user && toAdminUser(user)
}

interface AdminChange {
  readonly user: UserRecord
  readonly isAdmin: boolean
  readonly admins: readonly UserRecord[]
}

/** In addition to the changed account. The acting administrator counts too. */
const mostTold = 50

/** Call it after the commit. */
export function announceAdmin(ctx: AuthContext, { user, isAdmin, admins }: AdminChange, actorId: string | null): void {
  const others = admins.filter(({ id }) => id !== user.id).sort((one) => (one.id === actorId ? -1 : 0))
  for (const recipient of [user, ...others.slice(0, mostTold)])
    mailNotice(ctx, recipient, isAdmin ? 'admin_granted' : 'admin_revoked', undefined, { items: [user.email] })
}

/**
 * Only for a table without a column for the activation date. The used link shows that the account was active once. Without it, an account
 * deactivated before its first login would count as pending, and could activate itself again.
 * @throws Error if the store did not record the link as used; the transaction is then rolled back
 */
export async function recordTrace(ctx: AuthContext, user: UserRecord): Promise<void> {
  if (ctx.store.users.fields.has('activatedAt')) return
  const now = ctx.now()
  const tokenHash = hashOpaqueToken(newOpaqueToken())
  const expiresAt = new Date(now.getTime() + ctx.settings.activationTtlSeconds * 1000)
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash,
    purpose: 'ACTIVATION',
    payload: null,
    expiresAt,
    usedAt: null,
    createdAt: now,
  })
  // Unused at first, because `consume` also determines how long the store keeps the used row.
  const trace = await ctx.store.userTokens.consume(tokenHash, 'ACTIVATION', now)
  if (!trace)
    throw new Error('The store could not use a token that it had just inserted, so nothing shows that the account was active once.')
}

/** An account as an administrator sees it: the fields that the owner sees, and two dates. The object never contains a hash or a secret. */
export interface AdminUser extends PublicUser {
  readonly emailVerifiedAt: Date | null
  readonly activatedAt: Date | null
  /** Since when the account waits for an administrator. Absent: it does not wait. */
  readonly approvalRequestedAt?: Date
  /** Since when the account waits for its deletion. Absent: it does not wait. */
  readonly deletionRequestedAt?: Date
}

export function toAdminUser(user: UserRecord): AdminUser {
  const { emailVerifiedAt, activatedAt, approvalRequestedAt, deletionRequestedAt } = user
  const waiting = { ...(approvalRequestedAt && { approvalRequestedAt }), ...(deletionRequestedAt && { deletionRequestedAt }) }
  return Object.freeze({ ...toPublicUser(user), emailVerifiedAt, activatedAt, ...waiting })
}

export function adminUserSchema(ctx: AuthContext): JsonSchema {
  const dates = { email_verified_at: instantOrNull, activated_at: instantOrNull }
  return userSchema(ctx.store.users, 'AdminUser', {
    ...dates,
    ...(approves(ctx) && { approval_requested_at: instantOrNull }),
    ...(deletes(ctx) && { deletion_requested_at: instantOrNull }),
  })
}

export function adminUserBody(ctx: AuthContext, user: AdminUser): object {
  return {
    ...userBody(ctx.store.users, user),
    email_verified_at: user.emailVerifiedAt?.toISOString() ?? null,
    activated_at: user.activatedAt?.toISOString() ?? null,
    ...(approves(ctx) && { approval_requested_at: user.approvalRequestedAt?.toISOString() ?? null }),
    ...(deletes(ctx) && { deletion_requested_at: user.deletionRequestedAt?.toISOString() ?? null }),
  }
}

export function approves({ settings }: Pick<AuthContext, 'settings'>): boolean {
  return settings.signupMode === 'approve'
}

function deletes({ settings }: Pick<AuthContext, 'settings'>): boolean {
  return settings.accountDeletion !== 'off'
}
