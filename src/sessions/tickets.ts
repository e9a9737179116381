import type { AuthContext } from '../context'
import { OAuthStateMismatchError } from '../core/errors'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import type { UserRecord, UserTokenPurpose } from '../store/auth-store'
import { accountDigest, isAccountDigest } from './challenge'
import { after } from './find-session'

/** `LINK_TICKET` finishes a link. `REAUTH_TICKET` finishes a reauthentication at a provider. A ticket is valid only for its own purpose. */
export type TicketPurpose = Extract<UserTokenPurpose, 'LINK_TICKET' | 'REAUTH_TICKET'>

/** The person who started at the provider. Only this person may use the ticket. */
export interface TicketOwner {
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
}

export const ticketSeconds = 300
/** The form of a ticket: 43 random characters, optionally followed by data. */
const shape = /^[\w-]{43}(?:\.[\w-]{1,6000})?$/

/**
 * Returns a one-time ticket of 300 seconds, for a browser in which nobody is signed in. The ticket's row contains the account, its session
 * and a digest of the account's credentials. The row's hash covers the whole ticket, so nobody can change the data in the ticket.
 * @param carries the data in the ticket; the browser can read it
 */
export async function issueTicket(
  ctx: AuthContext,
  purpose: TicketPurpose,
  { user, sessionId }: { user: UserRecord; sessionId: string | null },
  carries?: string,
): Promise<string> {
  const now = ctx.now()
  const random = newOpaqueToken()
  const ticket = carries === undefined ? random : `${random}.${Buffer.from(carries, 'utf8').toString('base64url')}`
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash: hashOpaqueToken(ticket),
    purpose,
    payload: JSON.stringify([sessionId, accountDigest(ctx.keys.state[0], user)]),
    expiresAt: after(now, ticketSeconds),
    usedAt: null,
    createdAt: now,
  })
  return ticket
}

/** The content of a used ticket. */
export interface TakenTicket {
  /** Null: the ticket contains no data. */
  readonly carries: string | null
  /**
   * Compares the account with the ticket. Pass the locked row.
   * @throws OAuthStateMismatchError if the account has changed since the ticket was made
   */
  requireSameAccount(user: UserRecord): void
}

/**
 * Uses a ticket up in every case, and rejects every caller except the ticket's owner.
 * @param owner the caller; null: a caller who may use no ticket
 * @throws OAuthStateMismatchError for a ticket that is unknown, used, expired, of another purpose or of another person
 */
export async function takeTicket(
  ctx: AuthContext,
  purpose: TicketPurpose,
  ticket: string,
  owner: TicketOwner | null,
): Promise<TakenTicket> {
  const row = shape.test(ticket) ? await ctx.store.userTokens.consume(hashOpaqueToken(ticket), purpose, ctx.now()) : null
  const [sessionId, digest] = row ? (JSON.parse(row.payload ?? '[]') as [string | null, string]) : [null, ''] // as `issueTicket` wrote it
  if (!row || row.userId !== owner?.userId || sessionId !== owner.sessionId) throw new OAuthStateMismatchError()
  const [, encoded] = ticket.split('.')
  return {
    carries: encoded === undefined ? null : Buffer.from(encoded, 'base64url').toString('utf8'),
    requireSameAccount(user) {
      if (!isAccountDigest(ctx.keys.state, user, digest)) throw new OAuthStateMismatchError()
    },
  }
}
