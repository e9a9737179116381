import type { AuthContext } from '../context'
import type { Locale } from '../http/locale'
import { acceptInvitation } from '../invitations/accept-invitation'
import { tryToCount } from '../rate-limits/rate-limiter'
import { isWaiting } from '../sessions/account-state'
import type { UserChanges, UserRecord } from '../store/auth-store'
import { mailNotice } from './email-links/send-mail'

// Every account that a person creates becomes active here, once: `firstActivation` says what is written, `completeFirstActivation` runs in
// the same transaction after it was written, and `announceActivation` after the commit.

interface Admission {
  /** The host itself signed the person up. */
  readonly isApproved?: boolean | undefined
  /** The id of the invitation that this activation uses. An invited account does not wait. */
  readonly invitation?: string | null
}

export function firstActivation(
  { now, settings }: Pick<AuthContext, 'now' | 'settings'>,
  { isApproved = false, invitation = null }: Admission,
): Required<Pick<UserChanges, 'isActive' | 'activatedAt'>> & Pick<UserChanges, 'approvalRequestedAt'> {
  const activatedAt = now()
  const isInvited = invitation !== null && settings.invitationsEnabled
  if (settings.signupMode === 'approve' && !isApproved && !isInvited)
    return { isActive: false, activatedAt, approvalRequestedAt: activatedAt }
  return { isActive: true, activatedAt }
}

/** @param user as written @param isNew the event `signup` tells of the account @throws InvitationRequiredError, and what the host's hook throws */
export async function completeFirstActivation(
  ctx: AuthContext,
  user: UserRecord,
  invitation: string | null,
  { isNew = false }: { isNew?: boolean } = {},
): Promise<void> {
  if (isWaiting(user)) ctx.events.emit('approval.requested', { userId: user.id })
  else if (!isNew) ctx.events.emit('activation', { userId: user.id })
  if (invitation !== null && ctx.settings.invitationsEnabled) await acceptInvitation(ctx, user, invitation)
}

export function announceActivation(ctx: AuthContext, user: UserRecord, locale: Locale | undefined): void {
  if (!isWaiting(user)) return
  mailNotice(ctx, user, 'approval_pending', locale)
  ctx.background.runIfRoom('approval request', () => tellAdministrators(ctx))
}

const mostTold = 50
const mostCounted = 1_000
const hourly = { name: 'approval:told', subject: '', rateLimit: { attempts: 1, windowSeconds: 3_600 } } as const

/** One notice an hour, so that a flood of sign-ups is none of mails. */
async function tellAdministrators(ctx: AuthContext): Promise<void> {
  const { users } = ctx.store
  if (!ctx.mailQueue || !users.fields.has('isAdmin') || !(await tryToCount(ctx, [hourly]))) return
  const waiting = await users.list({
    filters: [{ field: 'approvalRequestedAt', operator: 'isnull', value: false }],
    after: null,
    limit: mostCounted,
  })
  const administrators = await users.list({
    filters: [
      { field: 'isAdmin', operator: 'eq', value: true },
      { field: 'isActive', operator: 'eq', value: true },
    ],
    after: null,
    limit: mostTold,
  })
  const items = [`${waiting.users.length}${waiting.next === null ? '' : '+'}`]
  for (const recipient of administrators.users) mailNotice(ctx, recipient, 'approval_requested', undefined, { items })
}
