import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { InvalidTokenError, PasswordAlreadySetError, UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { checkPassword } from '../passwords/check-password'
import { hashPassword } from '../passwords/hash-password'
import { hasPassword } from '../passwords/unusable-password'
import { findActiveUser } from '../sessions/reauthentication/find-active-user'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { requireFactor } from '../sessions/reauthentication/require-factor'
import { type CookieOfRequest, renewCookie, type StayingSession } from '../sessions/reissue-tokens'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { announceChange } from './undo/announce-change'

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
 * Sets the password of an account without a password. For example, an account has no password if a login by a provider created it, or if a
 * take-over (`accounts/take-over.ts`) removed the password.
 * @throws PasswordAlreadySetError, ValidationError (the password), UnauthorizedError (the account was deleted), AccountInactiveError,
 * MfaRequiredError, InvalidTokenError (the session has ended), TooManyRequestsError
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
  const staying = await announceChange(ctx, userId, { topic: 'password_changed', locale }, (leaveUndoPoint) =>
    transaction(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(userId)
      if (!user?.isActive) throw new UnauthorizedError()
      const held = await holdSession(ctx, session)
      // If the unusable hash changed, the sessions were revoked meanwhile. Without a session table, only that hash shows the revocation.
      if (!hasPassword(user) && user.hashedPassword !== seen.hashedPassword) throw new InvalidTokenError()
      const after = await store(ctx, user, hashedPassword, () => leaveUndoPoint(ctx, { user, isFinal }))
      return { user: after, cookie: await renewCookie(ctx, held, cookie) }
    }),
  )
  ctx.events.emit('password.changed', { userId, by: 'change' })
  return staying
}

/** Stores the password. Throws if another request has stored a password first. */
async function store(ctx: AuthContext, user: UserRecord, hashedPassword: string, leaveUndoPoint: () => Promise<void>): Promise<UserRecord> {
  if (hasPassword(user)) throw new PasswordAlreadySetError()
  const now = ctx.now()
  await leaveUndoPoint()
  const changes = { hashedPassword, passwordSetAt: now, updatedAt: now }
  await ctx.store.users.update(user.id, changes)
  await ctx.store.userTokens.consumeAllForUser(user.id, now, ['PASSWORD_RESET', 'EMAIL_CHANGE'])
  return { ...user, ...changes }
}
