import { announceChange } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import { LastLoginMethodError, NotFoundError, UnauthorizedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { announceEnded, endSessionsOpenedBy, forgetMethod } from '../sessions/end-opened-by'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import { type Irreversibility, passkeyDigest } from '../sessions/reauthentication/irreversible-change'
import { hasOtherLoginMethod } from '../sessions/reauthentication/login-methods'
import type { SessionRecord } from '../store/auth-store'
import { type PublicPasskey, toPublicPasskey } from './public-passkey'
import { passkeyToolsOf } from './verify-passkey'

/** Returns the account's passkeys, oldest first. */
export async function listPasskeys(ctx: AuthContext, userId: string): Promise<PublicPasskey[]> {
  return (await passkeyToolsOf(ctx).passkeys.listForUser(userId)).map(toPublicPasskey)
}

/**
 * Renames a passkey of this account.
 * @throws NotFoundError unless the passkey belongs to this account
 */
export async function renamePasskey(ctx: AuthContext, userId: string, id: string, name: string): Promise<PublicPasskey> {
  const { passkeys } = passkeyToolsOf(ctx)
  if (!(await passkeys.rename(id, userId, name))) throw new NotFoundError()
  const renamed = (await passkeys.listForUser(userId)).find((passkey) => passkey.id === id)
  if (!renamed) throw new NotFoundError()
  return toPublicPasskey(renamed)
}

export interface PasskeyRemoval {
  /** The session of the request. If the session ends meanwhile, the call fails. */
  session?: Pick<SessionRecord, 'id' | 'userId'> | null
  isFinal?: Irreversibility
  /** Language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Removes a passkey and sends the owner a notice. Locks the user's row first, because every login locks that row too. So after the commit,
 * no login with the passkey can succeed. Revokes the other sessions that a passkey opened. The rows do not say which passkey, so a session
 * of another passkey ends too. With the last passkey, the session of the request loses the method.
 * @throws NotFoundError unless the passkey belongs to this account, UnauthorizedError, InvalidTokenError (the session has ended);
 *   LastLoginMethodError (only with `oauthKeepLastLoginMethod`)
 */
export async function removePasskey(
  ctx: AuthContext,
  userId: string,
  id: string,
  { session, isFinal, locale }: PasskeyRemoval = {},
): Promise<void> {
  const ended = await announceChange(ctx, userId, { topic: 'passkey_removed', locale }, (leaveUndoPoint) =>
    transaction(ctx, async (ctx) => {
      const { passkeys } = passkeyToolsOf(ctx)
      const user = await ctx.store.users.lock(userId)
      if (!user?.isActive) throw new UnauthorizedError()
      const held = await holdSession(ctx, session)
      const all = await passkeys.listForUser(userId)
      const passkey = all.find((one) => one.id === id)
      if (!passkey) throw new NotFoundError()
      const isLast = ctx.settings.oauthKeepLastLoginMethod && !(await hasOtherLoginMethod(ctx, user, 'passkey'))
      if (isLast) throw new LastLoginMethodError()
      await leaveUndoPoint(ctx, { user, passkey: passkeyDigest(passkey), isFinal })
      await passkeys.deleteForUser(userId, id)
      if (held && all.length === 1) await forgetMethod(ctx, held, 'passkey')
      return endSessionsOpenedBy(ctx, userId, { amr: 'passkey' }, held)
    }),
  )
  announceEnded(ctx, userId, ended)
  ctx.events.emit('passkey.removed', { userId, passkeyId: id })
}
