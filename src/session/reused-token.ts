import { amrFromText } from '../amr'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import { logCounted } from '../logger'
import { hashOpaqueToken } from '../opaque-token'
import { reusedRefreshToken } from '../setup-notices/login-notices'
import { lineOf } from '../setup-notices/notices'
import type { SessionRecord, SessionStore } from '../store/auth-store'
import { isAlive } from './find-session'
import { after } from './instants'
import type { ContinuedSession } from './refresh'
import type { SessionTokenId } from './session-token'
import { possibleSuccessors } from './successor'

/**
 * Handles a refresh token that could not be rotated. Usually, the token was already used. Otherwise its session has ended, or its user is
 * inactive. A used token has one successor. Within the grace period, the client gets an unused successor again (two tabs, or a lost
 * response). The function writes nothing then, so a second successor never exists. In every other case, a used token revokes its session. A
 * made-up token revokes nothing.
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
  if (generation !== session.generation - 1 || !isWithinWindow(ctx, session, at)) return endReusedSession(ctx, sessions, session)
  if (!user.isActive) throw new AccountInactiveError()
  const candidates = possibleSuccessors(ctx, presented, { id, generation: session.generation })
  const refreshToken = candidates.find((token) => hashOpaqueToken(token) === session.tokenHash)
  // The successor was made under a secret that is no longer listed. No misuse happened, so the session stays.
  if (refreshToken === undefined) throw new InvalidTokenError()
  const { amr, authenticatedAt, expiresAt, isPersistent, rotatedAt } = session
  return { user, amr: amrFromText(amr), sessionId: id, authenticatedAt, refreshToken, expiresAt, isPersistent, at: rotatedAt ?? at }
}

/**
 * Returns true within the grace period, but not at its end. Without a grace period, always returns false, even if the clock of another
 * server is ahead.
 */
function isWithinWindow({ settings }: AuthContext, { rotatedAt }: SessionRecord, at: Date): boolean {
  const { refreshReuseGraceSeconds } = settings
  return refreshReuseGraceSeconds > 0 && rotatedAt !== null && after(rotatedAt, refreshReuseGraceSeconds) > at
}

/** Revokes the session of a reused token. The revocation stays, although the request fails. */
async function endReusedSession(ctx: AuthContext, sessions: SessionStore, { id, userId }: SessionRecord): Promise<never> {
  if (await sessions.revoke({ id }, ctx.now())) {
    ctx.events.emit('refresh.reused', { userId, familyId: id })
    const notice = reusedRefreshToken(id, ctx.settings.refreshReuseGraceSeconds)
    ctx.notices.keep(notice)
    // Not a notice's line: an attacker's own reuses must not use up the lines of the owner's.
    logCounted(ctx.logger, { level: notice.level, kind: notice.entry, fields: notice.fields ?? {}, message: lineOf(notice) })
  }
  throw new InvalidTokenError()
}
