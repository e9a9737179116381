import { type AuthMethod, isSecondFactor } from '../amr'
import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'
import { signAccessToken } from './access-token'
import { signChallenge } from './challenge'
import { issueRefreshToken } from './refresh-token'

/** A login with nothing left to show. */
export interface OpenedSession {
  kind: 'session'
  userId: string
  amr: readonly AuthMethod[]
}

export interface TokenPair extends OpenedSession {
  accessToken: string
  refreshToken: string
  /** The refresh token's idle end: what a cookie's Max-Age follows. */
  refreshTokenExpiresAt: Date
}

export interface LoginChallenge {
  kind: 'challenge'
  userId: string
  /** The first step's methods. */
  amr: readonly AuthMethod[]
  mfaToken: string
}

/** How every login ends: a session pair, or a second-factor challenge. */
export type LoginResult = TokenPair | LoginChallenge

/** Begins what a finished login gives: a token pair, or a server-side session. Inside the login's unit of work. */
export type OpenSession<Session extends OpenedSession> = (
  ctx: AuthContext,
  user: UserRecord,
  amr: readonly AuthMethod[],
) => Promise<Session>

/**
 * The one door. Called inside the unit of work that has locked the user's row and seen it active, or has just made it:
 * whatever deactivates the account waits for that unit and then ends the session it issued. Whoever has a second factor,
 * and has not shown it in this login, gets a challenge and no session, of whichever kind.
 */
export function finishLogin(ctx: AuthContext, user: UserRecord, amr: readonly AuthMethod[]): Promise<LoginResult>
export function finishLogin<Session extends OpenedSession>(
  ctx: AuthContext,
  user: UserRecord,
  amr: readonly AuthMethod[],
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge>
export async function finishLogin(
  ctx: AuthContext,
  user: UserRecord,
  amr: readonly AuthMethod[],
  open: OpenSession<OpenedSession> = openTokenPair,
): Promise<OpenedSession | LoginChallenge> {
  if (ctx.settings.mfaEnabled && user.totpEnabledAt && !amr.some(isSecondFactor))
    return { kind: 'challenge', userId: user.id, amr, mfaToken: signChallenge(ctx, await asStored(ctx, user), amr) }
  return open(ctx, user, amr)
}

export async function openTokenPair(ctx: AuthContext, user: UserRecord, amr: readonly AuthMethod[]): Promise<TokenPair> {
  const refresh = await issueRefreshToken(ctx, user, amr)
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, amr, refresh.createdAt),
    refreshToken: refresh.token,
    refreshTokenExpiresAt: refresh.expiresAt,
  }
}

/** A challenge is compared with the row later, and a host's table may keep less of it: whole seconds, or no such column. */
async function asStored(ctx: AuthContext, user: UserRecord): Promise<UserRecord> {
  return (await ctx.store.users.find(user.id)) ?? user
}
