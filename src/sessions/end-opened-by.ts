import type { AuthContext } from '../context'
import { type AuthMethod, amrFromText, amrToText, noMethods } from '../core/amr'
import type { SessionChoice, SessionRecord } from '../store/auth-store'

/**
 * Revokes the sessions that a removed credential opened, except the session of the request. Also revokes app logins before their exchange,
 * because such a login may have used the credential. Call the function inside a transaction that has locked the user's row.
 * @param kept the session of the request; null if the call has no session
 * @returns how many sessions were not revoked before
 */
export async function endSessionsOpenedBy(
  ctx: AuthContext,
  userId: string,
  openedBy: Pick<SessionChoice, 'amr' | 'provider'>,
  kept: Pick<SessionRecord, 'id'> | null,
): Promise<number> {
  await ctx.store.userTokens.consumeAllForUser(userId, ctx.now(), 'OAUTH_CODE')
  return (await ctx.store.sessions?.revokeForUser(userId, ctx.now(), { ...openedBy, ...(kept && { exceptId: kept.id }) })) ?? 0
}

/** Emits the event of `endSessionsOpenedBy`. Call the function after the commit. */
export function announceEnded({ events }: AuthContext, userId: string, count: number): void {
  if (count > 0) events.emit('session.revoked', { userId, count })
}

/** Removes a method from a live session, because its credential no longer exists. */
export async function forgetMethod(ctx: AuthContext, { id, amr: known }: SessionRecord, method: AuthMethod): Promise<void> {
  const amr = amrFromText(known).filter((one) => one !== method)
  await ctx.store.sessions?.update(id, { amr: amrToText(amr) || noMethods })
}
