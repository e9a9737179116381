import type { AuthContext } from '../../context'
import type { Locale } from '../../http/locale'
import { addPendingPasskey, type PendingPasskey } from '../../passkeys/pending-passkey'
import type { UserRecord } from '../../store/auth-store'
import { mailNotice } from '../email-links/send-mail'

/** Null: there is nothing to say. `left_out`: the account is activated without the passkey of its sign-up. */
export type SignupPasskeyEnd = 'added' | 'left_out' | null

/** Call it inside the transaction of the activation. @throws DuplicateRecordError if another activation adds the same passkey at once */
export async function endSignupPasskey(ctx: AuthContext, user: UserRecord, pending: PendingPasskey): Promise<SignupPasskeyEnd> {
  const added = await addPendingPasskey(ctx, user, pending)
  if (!added) return 'left_out'
  ctx.events.emit('passkey.added', { userId: user.id, passkeyId: added.id })
  return 'added'
}

/** Call it after the commit. */
export function announceSignupPasskey(ctx: AuthContext, user: UserRecord, end: SignupPasskeyEnd, locale?: Locale): void {
  if (end === 'left_out') mailNotice(ctx, user, 'passkey_left_out', locale)
}
