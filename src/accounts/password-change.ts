import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { InvalidCredentialsError, InvalidTokenError, MfaRequiredError, PasswordAlreadySetError, UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { checkPassword } from '../passwords/check-password'
import { hashPassword, hasPassword, newPasswordChanges } from '../passwords/verify-password'
import { forgetWrongCodes } from '../second-factor/code-limits'
import { endOtherSessions, type KeptSession } from '../sessions/log-out'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import { type Irreversibility, requireFactor } from '../sessions/reauthentication/irreversible-change'
import { withPassword } from '../sessions/reauthentication/reauthenticate'
import { findActiveUser } from '../sessions/reauthentication/request-session'
import { type CookieOfRequest, renewCookie, type StayingSession } from '../sessions/reissue-tokens'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { distrust } from '../trusted-devices/distrust'
import { announceChange, type LeaveUndoPoint } from './undo/announce-change'

export interface PasswordChange {
  userId: string
  currentPassword: string
  newPassword: string
  /** How the session authenticated. Left out for a call without a session. The caller is then responsible for authentication. */
  amr?: readonly AuthMethod[] | undefined
  /** The session that stays if `session` is left out. Every other session of the account is revoked. */
  keep?: KeptSession | undefined
  /** The session of the request. The session must still be live. The change does not revoke this session. */
  session?: SessionRecord | null | undefined
  /** The cookie of the request. The change replaces its value. */
  cookie?: CookieOfRequest | null | undefined
  /** If not false, an undo link cannot revert the change (`Irreversibility`). */
  isFinal?: Irreversibility | undefined
  /** Language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Revokes every other session, and mailed links that reset the password or change the address.
 * @throws ValidationError, InvalidCredentialsError, TooManyRequestsError, UnauthorizedError, AccountInactiveError; MfaRequiredError if the
 * account has a second factor that the session did not use
 */
export async function changePassword(
  ctx: AuthContext,
  { userId, currentPassword, newPassword, amr, locale, ...replacing }: PasswordChange,
): Promise<StayingSession> {
  const user = await findActiveUser(ctx, userId)
  requireFactor(ctx, user, amr)
  await checkPassword(ctx, newPassword, user)
  const staying = await announceChange(ctx, userId, { topic: 'password_changed', locale }, async (leaveUndoPoint) => {
    const change = { ...replacing, leaveUndoPoint }
    const work = () => hashAndReplace(ctx, user, newPassword, change)
    const { hash, staying } = await withPassword(ctx, user, currentPassword, work, replacing.session)
    // A login may have stored a better hash of the same password meanwhile.
    return staying ?? (await replaceAgain(ctx, await findActiveUser(ctx, userId), currentPassword, hash, change))
  })
  await forgetWrongCodes(ctx, userId)
  return staying
}

interface Replacing extends Pick<PasswordChange, 'session' | 'cookie' | 'keep' | 'isFinal'> {
  leaveUndoPoint: LeaveUndoPoint
}

/** Also returns the new hash, for another try if `staying` is null. */
async function hashAndReplace(ctx: AuthContext, seen: UserRecord, newPassword: string, replacing: Replacing) {
  const hash = await hashPassword(ctx, newPassword)
  return { hash, staying: await transaction(ctx, (ctx) => replacePassword(ctx, seen, hash, replacing)) }
}

async function replaceAgain(
  ctx: AuthContext,
  seen: UserRecord,
  currentPassword: string,
  hash: string,
  replacing: Replacing,
): Promise<StayingSession> {
  const replace = async () => {
    const staying = await transaction(ctx, (ctx) => replacePassword(ctx, seen, hash, replacing))
    if (!staying) throw new InvalidCredentialsError()
    return staying
  }
  return withPassword(ctx, seen, currentPassword, replace, replacing.session)
}

/** Null if the account no longer has the verified password: a second change at once needs the password that the first one set. */
async function replacePassword(
  ctx: AuthContext,
  seen: UserRecord,
  hashedPassword: string,
  { session, cookie, keep, isFinal, leaveUndoPoint }: Replacing,
): Promise<StayingSession | null> {
  const now = ctx.now()
  const user = await ctx.store.users.lock(seen.id)
  if (!user?.isActive || user.hashedPassword !== seen.hashedPassword) return null
  const held = await holdSession(ctx, session)
  // `requireFactor` saw no factor. If one was confirmed meanwhile, this request's login did not use it.
  if (seen.totpEnabledAt === null && user.totpEnabledAt !== null) throw new MfaRequiredError()
  await leaveUndoPoint(ctx, { user, isFinal })
  const changes = { ...newPasswordChanges(ctx, hashedPassword, now), updatedAt: now }
  await ctx.store.users.update(user.id, changes)
  ctx.events.emit('password.changed', { userId: user.id, by: 'change' })
  await ctx.store.userTokens.consumeAllForUser(user.id, now, 'PASSWORD_RESET')
  await endOtherSessions(ctx, user.id, session ? { sessionId: session.id } : keep)
  return { user: { ...user, ...changes }, cookie: await renewCookie(ctx, held, cookie) }
}

export interface FirstPassword {
  userId: string
  newPassword: string
  /** How the session authenticated. Left out for a call without a session. The caller is then responsible for authentication. */
  amr?: readonly AuthMethod[] | undefined
  /** The session of the request. If the session ends meanwhile, the call fails. */
  session?: SessionRecord | null | undefined
  /** The cookie of the request. The change replaces its value. */
  cookie?: CookieOfRequest | null | undefined
  /** If not false, an undo link cannot revert the change (`Irreversibility`). */
  isFinal?: Irreversibility | undefined
  /** Language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * For an account that a login by a provider created, or whose password a take-over removed.
 * @throws PasswordAlreadySetError, ValidationError, UnauthorizedError, AccountInactiveError, MfaRequiredError, InvalidTokenError,
 * TooManyRequestsError
 */
export async function setFirstPassword(
  ctx: AuthContext,
  { userId, newPassword, amr, session, cookie, isFinal, locale }: FirstPassword,
): Promise<StayingSession> {
  const seen = await findActiveUser(ctx, userId)
  requireFactor(ctx, seen, amr)
  if (hasPassword(seen)) throw new PasswordAlreadySetError()
  await checkPassword(ctx, newPassword, seen)
  const hashedPassword = await hashPassword(ctx, newPassword)
  return announceChange(ctx, userId, { topic: 'password_changed', locale }, (leaveUndoPoint) =>
    transaction(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(userId)
      if (!user?.isActive) throw new UnauthorizedError()
      const held = await holdSession(ctx, session)
      // Without a session table, only a changed unusable hash shows that the sessions were revoked meanwhile.
      if (!hasPassword(user) && user.hashedPassword !== seen.hashedPassword) throw new InvalidTokenError()
      const after = await store(ctx, user, hashedPassword, () => leaveUndoPoint(ctx, { user, isFinal }))
      return { user: after, cookie: await renewCookie(ctx, held, cookie) }
    }),
  )
}

/** Throws if another request has stored a password first. */
async function store(ctx: AuthContext, user: UserRecord, hashedPassword: string, leaveUndoPoint: () => Promise<void>): Promise<UserRecord> {
  if (hasPassword(user)) throw new PasswordAlreadySetError()
  const now = ctx.now()
  await leaveUndoPoint()
  const changes = { ...newPasswordChanges(ctx, hashedPassword, now), updatedAt: now }
  await ctx.store.users.update(user.id, changes)
  ctx.events.emit('password.changed', { userId: user.id, by: 'change' })
  await ctx.store.userTokens.consumeAllForUser(user.id, now, ['PASSWORD_RESET', 'EMAIL_CHANGE'])
  await distrust(ctx, user.id, { reason: 'account_changed' })
  return { ...user, ...changes }
}
