import type { AuthContext } from '../context'
import { OAuthStateMismatchError } from '../errors'
import { hashOpaqueToken, newOpaqueToken } from '../opaque-token'
import type { UserRecord, UserTokenPurpose } from '../store/auth-store'
import { accountDigest, isAccountDigest } from './account-digest'
import { after } from './instants'

/** `LINK_TICKET`: what a link still has to do. `REAUTH_TICKET`: what a provider has proven. One is never taken for the other. */
export type TicketPurpose = Extract<UserTokenPurpose, 'LINK_TICKET' | 'REAUTH_TICKET'>

/** Who began at the provider, and therefore the only one who may use the ticket. */
export interface TicketOwner {
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
}

export const ticketSeconds = 300
/** 43 characters, and what the ticket carries. */
const shape = /^[\w-]{43}(?:\.[\w-]{1,6000})?$/

/**
 * Returns a one-shot ticket of 300 seconds for a browser that nobody is signed in for. The row is bound to the account, to its session, and
 * to what lets people into the account; the row's hash covers the whole ticket, so nobody can change what it carries.
 * @param carries what the ticket is about; the browser can read it
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

/** What a ticket stood for. */
export interface TakenTicket {
  /** Null: it carries nothing. */
  readonly carries: string | null
  /** Throws unless the account is what it was when the ticket was made; for the locked row. @throws OAuthStateMismatchError */
  requireSameAccount(user: UserRecord): void
}

/**
 * Uses a ticket up in every case, and refuses every caller except its owner.
 * @param owner the caller; null: a caller who may use no ticket
 * @throws OAuthStateMismatchError for a ticket that is unknown, used, expired, of another purpose or of somebody else
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
