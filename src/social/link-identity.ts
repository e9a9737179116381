import type { Response } from 'express'
import { announceChange, type LeaveUndoPoint } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import {
  AccountInactiveError,
  OAuthIdentityTakenError,
  OAuthProviderAlreadyLinkedError,
  OAuthStateMismatchError,
  ServiceUnavailableError,
  UnauthorizedError,
} from '../core/errors'
import { shape, string } from '../http/description'
import type { Locale } from '../http/locale'
import { sendJson, sendRedirect, withParameter } from '../http/send'
import type { OAuthUser } from '../providers/provider-client'
import { isAccountDigest } from '../sessions/challenge'
import { isApp } from '../sessions/destination'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import { issueTicket, type TicketOwner, takeTicket } from '../sessions/tickets'
import { DuplicateRecordError, type IdentityRecord, type SessionRecord, type UserRecord } from '../store/auth-store'
import { identitiesOf, identityRecord } from './identities'
import { acceptProfile } from './log-in-with-identity'
import type { BoundAttempt } from './state-cookie'

export interface LinkedIdentity {
  identity: IdentityRecord
  /** False: the identity was already linked to this account. */
  isNew: boolean
  owner: UserRecord
}

/** Throws if the account must not be linked. `user` is the locked row, and `ctx` belongs to the transaction. */
type LinkCheck = (ctx: AuthContext, user: UserRecord | null) => Promise<void> | void

export interface LinkOptions {
  check?: LinkCheck
  /** Whether an older factor confirmed the change (`Irreversibility`). If so, the mailed notice cannot undo it. */
  isFinal?: Irreversibility | undefined
  /** Of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

const rounds = 4

/**
 * At the request of the account's owner, so the email does not matter. Never moves an identity from another account. Decides under the lock
 * of the user's row. A conflict with a parallel request is tried again.
 * @throws OAuthIdentityTakenError, OAuthProviderAlreadyLinkedError, OAuthError, ServiceUnavailableError (too many conflicts)
 * @throws what `check` throws (default: UnauthorizedError, AccountInactiveError); UnauthorizedError for an identity of a deleted account
 */
export async function linkIdentity(
  ctx: AuthContext,
  userId: string,
  given: OAuthUser,
  { check = (_ctx, user) => requireActive(user), isFinal, locale }: LinkOptions = {},
): Promise<LinkedIdentity> {
  const profile = acceptProfile(given)
  const { provider } = profile
  return announceChange(ctx, userId, { topic: 'identity_linked', locale, provider }, async (leaveUndoPoint) => {
    for (let round = 1; round <= rounds; round += 1) {
      const leave: LeaveUndoPoint = (ctx, { user }) => leaveUndoPoint(ctx, { user, isFinal })
      const linked = await tryOnce(ctx, userId, profile, check, leave)
      if (linked) return linked
    }
    throw new ServiceUnavailableError()
  })
}

export function requireActive(user: UserRecord | null): asserts user is UserRecord {
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
}

async function tryOnce(
  ctx: AuthContext,
  userId: string,
  profile: OAuthUser,
  check: LinkCheck,
  leaveUndoPoint: LeaveUndoPoint,
): Promise<LinkedIdentity | null> {
  try {
    return await transaction(ctx, async (ctx) => {
      const owner = await ctx.store.users.lock(userId)
      await check(ctx, owner)
      if (!owner) throw new UnauthorizedError()
      return link(ctx, owner, profile, leaveUndoPoint)
    })
  } catch (error) {
    if (error instanceof DuplicateRecordError) return null
    throw error
  }
}

async function link(ctx: AuthContext, owner: UserRecord, profile: OAuthUser, leaveUndoPoint: LeaveUndoPoint): Promise<LinkedIdentity> {
  const { provider, subject } = profile
  const known = await identitiesOf(ctx).findWithUser(provider, subject)
  if (known && !known.user) throw new UnauthorizedError()
  if (known?.user && known.user.id !== owner.id) throw new OAuthIdentityTakenError({ details: { provider } })
  if (known) return { identity: known.identity, isNew: false, owner }
  const own = await identitiesOf(ctx).listForUser(owner.id)
  if (own.some((identity) => identity.provider === provider)) throw new OAuthProviderAlreadyLinkedError({ details: { provider } })
  await leaveUndoPoint(ctx, { user: owner })
  ctx.events.emit('identity.linked', { userId: owner.id, provider })
  return { identity: await identitiesOf(ctx).insert(identityRecord(owner.id, profile, ctx.now())), isNew: true, owner }
}

/** Only the account and session that began can redeem it. @throws OAuthStateMismatchError if the account has changed since */
export function issueLinkTicket(ctx: AuthContext, { userId, sessionId, digest, isFinal }: BoundAttempt, given: OAuthUser): Promise<string> {
  const { provider, subject, email, emailVerified, name, picture } = acceptProfile(given)
  return transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    if (!user || !isAccountDigest(ctx.keys.state, user, digest)) throw new OAuthStateMismatchError()
    const identity = JSON.stringify({ provider, subject, email, emailVerified, name, picture, isFinal })
    return issueTicket(ctx, 'LINK_TICKET', { user, sessionId }, identity)
  })
}

interface LinkRedemption {
  /** Null: the caller may not redeem any ticket. */
  owner: TicketOwner | null
  ticket: string
  locale?: Locale | undefined
}

/** Uses the ticket up in any case. @throws OAuthStateMismatchError for another account or session, and what `linkIdentity` throws */
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

/** Locks the session's row until the transaction ends. Call it in a transaction that has locked the user's row. */
export async function requireTicketSession(ctx: AuthContext, { userId, sessionId }: TicketOwner): Promise<SessionRecord | null> {
  if (!ctx.store.sessions) return null
  const held = sessionId === null ? null : await ctx.store.sessions.lock(sessionId, ctx.now())
  if (held?.userId !== userId) throw new OAuthStateMismatchError()
  return held
}

type TicketName = 'link_ticket' | 'reauthentication_ticket'

export const ticketSchemas = [
  shape('LinkTicket', { link_ticket: string }),
  shape('ReauthenticationTicket', { reauthentication_ticket: string }),
]

/** To an app in the query, else in the success redirect's fragment (no server or log gets it), else in the body. Never in a `return_to`. */
export function sendTicket(
  { settings }: AuthContext,
  res: Response,
  name: TicketName,
  ticket: string,
  { destination }: BoundAttempt,
): void {
  const { oauthSuccessRedirect: target } = settings
  if (isApp(destination)) sendRedirect(res, withParameter(destination.redirectTo, 'ticket', ticket))
  else if (target === null) sendJson(res, 200, { [name]: ticket })
  else sendRedirect(res, `${target}${target.includes('#') ? '&' : '#'}${name}=${ticket}`)
}
