import { type AuthContext, unitOfWork } from '../context'
import { MfaFactorTooNewError, MfaRequiredError, OAuthStateMismatchError } from '../errors'
import { isAccountDigest } from '../session/account-digest'
import { issueTicket, type TicketOwner, takeTicket } from '../session/tickets'
import type { UserRecord } from '../store/auth-store'
import { needsFactor } from './methods'
import { identityUsableAt } from './young-credential'

/** The identity that signed in anew at its provider. */
export interface ProvenIdentity {
  readonly provider: string
  readonly subject: string
}

/** Who began to confirm at a provider. */
export interface Confirmer extends TicketOwner {
  /** `accountDigest` at the start. */
  readonly digest: string
}

/**
 * Throws unless this identity confirms this account: it is linked to it, for 24 hours at least. Inside the transaction that holds the user's
 * row.
 * @throws OAuthStateMismatchError (another identity), MfaFactorTooNewError
 */
export async function requireConfirming(ctx: AuthContext, user: UserRecord, { provider, subject }: ProvenIdentity): Promise<void> {
  const found = await ctx.store.identities?.findWithUser(provider, subject)
  if (!found || found.user?.id !== user.id) throw new OAuthStateMismatchError()
  const usable = identityUsableAt(ctx, user, found.identity.createdAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}

/**
 * Returns the ticket that a browser gets where the session that began is not signed in: that session redeems it at `POST /reauthenticate`.
 * @throws OAuthStateMismatchError where the account has changed since, and what `requireConfirming` throws
 */
export function issueConfirmationTicket(
  ctx: AuthContext,
  { userId, sessionId, digest }: Confirmer,
  identity: ProvenIdentity,
): Promise<string> {
  return unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    if (!user || !isAccountDigest(ctx.keys.state, user, digest)) throw new OAuthStateMismatchError()
    if (needsFactor(ctx, user)) throw new MfaRequiredError()
    await requireConfirming(ctx, user, identity)
    const { provider, subject } = identity
    return issueTicket(ctx, 'REAUTH_TICKET', { user, sessionId }, JSON.stringify({ provider, subject }))
  })
}

/**
 * Uses the ticket up in every case. Returns the check for the transaction that makes the session fresh.
 * @throws OAuthStateMismatchError unless the account and the session began it
 */
export async function takeConfirmationTicket(
  ctx: AuthContext,
  owner: TicketOwner | null,
  ticket: string,
): Promise<(ctx: AuthContext, user: UserRecord) => Promise<void>> {
  const taken = await takeTicket(ctx, 'REAUTH_TICKET', ticket, owner)
  const identity = JSON.parse(taken.carries ?? '{}') as ProvenIdentity // as it was issued
  return async (ctx, user) => {
    taken.requireSameAccount(user)
    await requireConfirming(ctx, user, identity)
  }
}
