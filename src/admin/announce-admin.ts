import { mailNotice } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'

/** A grant or removal of administrator rights, with the people to notify. */
export interface AdminChange {
  readonly user: UserRecord
  readonly isAdmin: boolean
  /** The active administrators after the change. */
  readonly admins: readonly UserRecord[]
}

/** The maximum number of administrators who get a notice, in addition to the changed account. The acting administrator counts too. */
const mostTold = 50

/** Emits the event. Notifies the account, the acting administrator and the other administrators. Call the function after the commit. */
export function announceAdmin(ctx: AuthContext, { user, isAdmin, admins }: AdminChange, actorId: string | null): void {
  const who = { userId: user.id, actorId }
  if (isAdmin) ctx.events.emit('admin.granted', who)
  else ctx.events.emit('admin.revoked', who)
  const others = admins.filter(({ id }) => id !== user.id).sort((one) => (one.id === actorId ? -1 : 0))
  for (const recipient of [user, ...others.slice(0, mostTold)])
    mailNotice(ctx, recipient, isAdmin ? 'admin_granted' : 'admin_revoked', undefined, { items: [user.email] })
}
