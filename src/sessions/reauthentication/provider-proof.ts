import { type AuthContext, transaction } from '../../context'
import { MfaFactorTooNewError, MfaRequiredError, OAuthStateMismatchError } from '../../core/errors'
import type { UserRecord } from '../../store/auth-store'
import { isAccountDigest } from '../challenge'
import { issueTicket, type TicketOwner, takeTicket } from '../tickets'
import { identityUsableAt, needsFactor } from './methods'

export interface VerifiedIdentity {
  readonly provider: string
  readonly subject: string
}

export interface Confirmer extends TicketOwner {
  /** `accountDigest` when the reauthentication began. */
  readonly digest: string
}

/** Call it inside the transaction that has locked the user's row. @throws OAuthStateMismatchError, MfaFactorTooNewError */
export async function requireConfirming(ctx: AuthContext, user: UserRecord, { provider, subject }: VerifiedIdentity): Promise<void> {
  const found = await ctx.store.identities?.findWithUser(provider, subject)
  if (!found || found.user?.id !== user.id) throw new OAuthStateMismatchError()
  const usable = identityUsableAt(ctx, user, found.identity.createdAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}

/**
 * For a callback in a browser without the session that began. That session redeems the ticket at `POST /reauthenticate`.
 * @throws OAuthStateMismatchError if the account has changed since then, MfaRequiredError, and the errors of `requireConfirming`
 */
export function issueConfirmationTicket(
  ctx: AuthContext,
  { userId, sessionId, digest }: Confirmer,
  identity: VerifiedIdentity,
): Promise<string> {
  return transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    if (!user || !isAccountDigest(ctx.keys.state, user, digest)) throw new OAuthStateMismatchError()
    if (needsFactor(ctx, user)) throw new MfaRequiredError()
    await requireConfirming(ctx, user, identity)
    const { provider, subject } = identity
    return issueTicket(ctx, 'REAUTH_TICKET', { user, sessionId }, JSON.stringify({ provider, subject }))
  })
}

/** Used up even if a later check fails. @throws OAuthStateMismatchError unless this account and session began */
export async function takeConfirmationTicket(
  ctx: AuthContext,
  owner: TicketOwner | null,
  ticket: string,
): Promise<(ctx: AuthContext, user: UserRecord) => Promise<void>> {
  const taken = await takeTicket(ctx, 'REAUTH_TICKET', ticket, owner)
  const identity = JSON.parse(taken.carries ?? '{}') as VerifiedIdentity // `issueConfirmationTicket` writes this type
  return async (ctx, user) => {
    taken.requireSameAccount(user)
    await requireConfirming(ctx, user, identity)
  }
}
