import { amrFromText } from '../amr'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { SessionRecord, SessionStore } from '../store/auth-store'
import { isAlive } from './find-session'
import { after } from './instants'
import type { ContinuedSession } from './refresh'
import { isOldSessionToken, type SessionTokenId } from './session-token'
import { possibleSuccessors } from './successor'

/**
 * Decides about a refresh token that is ours but could not be used. One that was used before gets its successor once more, within the grace
 * window and while that is unused: two tabs, or a lost answer. Nothing is written for it, so there is never a second successor. Otherwise a
 * used token ends its session. A token that was never valid ends nothing, because nobody may end a session by a made-up token.
 *
 * @throws InvalidTokenError, AccountInactiveError
 */
export async function refuseUsedToken(
  ctx: AuthContext,
  sessions: SessionStore,
  presented: string,
  { id, generation }: SessionTokenId,
  at: Date,
): Promise<ContinuedSession> {
  const found = await sessions.find({ id })
  if (found?.session.kind !== 'tokens' || !isAlive(found.session, at)) throw new InvalidTokenError()
  const { session, user } = found
  if (generation >= session.generation) {
    if (hashOpaqueToken(presented) === session.tokenHash && !user.isActive) throw new AccountInactiveError()
    throw new InvalidTokenError()
  }
  if (generation !== session.generation - 1 || !isWithinWindow(ctx, session, at)) return endReusedSession(ctx, sessions, session, presented)
  if (!user.isActive) throw new AccountInactiveError()
  const candidates = possibleSuccessors(ctx, presented, { id, generation: session.generation })
  const refreshToken = candidates.find((token) => hashOpaqueToken(token) === session.tokenHash)
  // Made under a secret that is no longer listed: nobody's fault, so nothing ends.
  if (refreshToken === undefined) throw new InvalidTokenError()
  const { amr, authenticatedAt, expiresAt, isPersistent, rotatedAt } = session
  return { user, amr: amrFromText(amr), sessionId: id, authenticatedAt, refreshToken, expiresAt, isPersistent, at: rotatedAt ?? at }
}

/** Over at its very end. Without a window never, also where another server's clock is ahead of ours. */
function isWithinWindow({ settings }: AuthContext, { rotatedAt }: SessionRecord, at: Date): boolean {
  const { refreshReuseGraceSeconds } = settings
  return refreshReuseGraceSeconds > 0 && rotatedAt !== null && after(rotatedAt, refreshReuseGraceSeconds) > at
}

/** The end stays although the request fails. A token of release 0.1.0 has no MAC, so it ends nothing. */
async function endReusedSession(
  ctx: AuthContext,
  sessions: SessionStore,
  { id, userId }: SessionRecord,
  presented: string,
): Promise<never> {
  if (!isOldSessionToken(presented) && (await sessions.revoke({ id }, ctx.now())))
    ctx.events.emit('refresh.reused', { userId, familyId: id })
  throw new InvalidTokenError()
}
