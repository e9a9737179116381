import type { AuthContext } from '../context'
import { mailNotice } from '../mailbox/send-mail'
import type { UserRecord } from '../store/auth-store'

/** Who became, or ceased to be, an administrator, and who else has to know of it. */
export interface AdminChange {
  readonly user: UserRecord
  readonly isAdmin: boolean
  /** The active administrators after the change. */
  readonly admins: readonly UserRecord[]
}

/** So many administrators are told, beside the one that it is about. */
const mostTold = 50

/** After the commit: an event, and a notice to the person, to the administrator who acted and to the others. */
export function announceAdmin(ctx: AuthContext, { user, isAdmin, admins }: AdminChange, actorId: string | null): void {
  const who = { userId: user.id, actorId }
  if (isAdmin) ctx.events.emit('admin.granted', who)
  else ctx.events.emit('admin.revoked', who)
  const others = admins.filter(({ id }) => id !== user.id).sort((one) => (one.id === actorId ? -1 : 0))
  for (const recipient of [user, ...others.slice(0, mostTold)])
    mailNotice(ctx, recipient, isAdmin ? 'admin_granted' : 'admin_revoked', undefined, { items: [user.email] })
}
