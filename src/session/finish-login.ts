import { type AuthMethod, isSecondFactor } from '../amr'
import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'
import { signChallenge } from './challenge'

/** How somebody signed in. */
export interface Login {
  readonly amr: readonly AuthMethod[]
  /** The registration key of the provider that vouched for the person; null: none did. */
  readonly provider: string | null
}

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

/** Begins what a finished login gives: a token pair, or a server-side session. Inside the login's transaction. */
export type OpenSession<Session extends OpenedSession> = (ctx: AuthContext, user: UserRecord, login: Login) => Promise<Session>

/**
 * The one door. Called inside the unit of work that has locked the user's row and seen it active, or has just made it:
 * whatever deactivates the account waits for that unit and then ends the session it issued. Whoever has a second factor,
 * and has not shown it in this login, gets a challenge and no session, of whichever kind.
 */
export async function finishLogin<Session extends OpenedSession>(
  ctx: AuthContext,
  user: UserRecord,
  login: Login,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge> {
  if (ctx.settings.mfaEnabled && user.totpEnabledAt && !login.amr.some(isSecondFactor))
    return { kind: 'challenge', userId: user.id, amr: login.amr, mfaToken: signChallenge(ctx, await asStored(ctx, user), login) }
  return open(ctx, user, login)
}

/** A challenge is compared with the row later, and a host's table may keep less of it: whole seconds, or no such column. */
async function asStored(ctx: AuthContext, user: UserRecord): Promise<UserRecord> {
  return (await ctx.store.users.find(user.id)) ?? user
}
