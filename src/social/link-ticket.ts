import { type AuthContext, transaction } from '../context'
import { OAuthStateMismatchError } from '../core/errors'
import type { Locale } from '../http/locale'
import type { OAuthUser } from '../providers/provider-client'
import { isAccountDigest } from '../sessions/account-digest'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { issueTicket, type TicketOwner, takeTicket } from '../sessions/tickets'
import type { SessionRecord } from '../store/auth-store'
import { acceptProfile } from './accept-profile'
import { type LinkedIdentity, linkIdentity, requireActive } from './link-identity'
import type { BoundAttempt } from './state-cookie'

/**
 * Returns the ticket that the callback sends instead of linking the identity. Only the account and session that began the link can redeem
 * the ticket. Redeeming the ticket links the identity.
 * @throws OAuthStateMismatchError if the account has changed since the start
 */
export function issueLinkTicket(ctx: AuthContext, { userId, sessionId, digest, isFinal }: BoundAttempt, given: OAuthUser): Promise<string> {
  const { provider, subject, email, emailVerified, name, picture } = acceptProfile(given)
  return transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    if (!user || !isAccountDigest(ctx.keys.state, user, digest)) throw new OAuthStateMismatchError()
    const identity = JSON.stringify({ provider, subject, email, emailVerified, name, picture, isFinal })
    return issueTicket(ctx, 'LINK_TICKET', { user, sessionId }, identity)
  })
}

export interface LinkRedemption {
  /** Null: the caller may not redeem any ticket. */
  owner: TicketOwner | null
  ticket: string
  locale?: Locale | undefined
}

/**
 * Links the identity of a ticket. A refused attempt also uses the ticket up.
 * @throws OAuthStateMismatchError unless this account and session began the link and the session is still live
 * @throws what `linkIdentity` throws
 */
export async function redeemLinkTicket(ctx: AuthContext, { ticket, locale, owner }: LinkRedemption): Promise<LinkedIdentity> {
  const taken = await takeTicket(ctx, 'LINK_TICKET', ticket, owner)
  if (!owner) throw new OAuthStateMismatchError()
  const { isFinal, ...identity } = JSON.parse(taken.carries ?? '{}') as Omit<OAuthUser, 'raw'> & { isFinal: Irreversibility } // as it was issued
  return linkIdentity(
    ctx,
    owner.userId,
    { ...identity, raw: {} },
    {
      locale,
      isFinal,
      async check(ctx, user) {
        requireActive(user)
        taken.requireSameAccount(user)
        await requireTicketSession(ctx, owner)
      },
    },
  )
}

/** Requires a live session, and locks its row until the transaction ends. Call it in a transaction that has locked the user's row. */
export async function requireTicketSession(ctx: AuthContext, { userId, sessionId }: TicketOwner): Promise<SessionRecord | null> {
  if (!ctx.store.sessions) return null
  const held = sessionId === null ? null : await ctx.store.sessions.lock(sessionId, ctx.now())
  if (held?.userId !== userId) throw new OAuthStateMismatchError()
  return held
}
