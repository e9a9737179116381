import type { AuthContext } from '../context'
import { OAuthStateMismatchError } from '../core/errors'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import type { UserRecord, UserTokenPurpose } from '../store/auth-store'
import { accountDigest, isAccountDigest } from './challenge'
import { after } from './find-session'

/** `LINK_TICKET` finishes a link, `REAUTH_TICKET` a reauthentication at a provider. Neither is valid for the other. */
export type TicketPurpose = Extract<UserTokenPurpose, 'LINK_TICKET' | 'REAUTH_TICKET'>

/** Who started at the provider. Only this person may use the ticket. */
export interface TicketOwner {
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
}

export const ticketSeconds = 300
/** 43 random characters, optionally followed by data. */
const shape = /^[\w-]{43}(?:\.[\w-]{1,6000})?$/

/** Valid once, for 300 seconds. The hash covers the whole ticket, so its data cannot change. @param carries the browser can read it */
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

export interface TakenTicket {
  readonly carries: string | null
  /** Pass the locked row. @throws OAuthStateMismatchError if the account has changed since the ticket was made */
  requireSameAccount(user: UserRecord): void
}

/**
 * Used up in every case, also for a caller who is not the owner.
 * @param owner null: a caller who may use no ticket
 * @throws OAuthStateMismatchError
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
