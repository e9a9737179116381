import { type AuthMethod, isSecondFactor } from '../amr'
import type { AuthContext } from '../context'
import type { UserRecord } from '../store/auth-store'
import { signAccessToken } from './access-token'
import { signChallenge } from './challenge'
import { issueRefreshToken } from './refresh-token'

/** How every login ends: a session pair, or a second-factor challenge. */
export type LoginResult =
  | {
      kind: 'session'
      userId: string
      amr: readonly AuthMethod[]
      accessToken: string
      refreshToken: string
      /** The refresh token's idle end: what a cookie's Max-Age follows. */
      refreshTokenExpiresAt: Date
    }
  | {
      kind: 'challenge'
      userId: string
      /** The first step's methods. */
      amr: readonly AuthMethod[]
      mfaToken: string
    }

/**
 * The one door. Called inside the unit of work that has locked the user's row and seen it active, or has just made it:
 * whatever deactivates the account waits for that unit and then ends the session it issued. Whoever has a second factor,
 * and has not shown it in this login, gets a challenge and no session.
 */
export async function finishLogin(ctx: AuthContext, user: UserRecord, amr: readonly AuthMethod[]): Promise<LoginResult> {
  if (ctx.settings.mfaEnabled && user.totpEnabledAt && !amr.some(isSecondFactor))
    return { kind: 'challenge', userId: user.id, amr, mfaToken: signChallenge(ctx, await asStored(ctx, user), amr) }
  const refresh = await issueRefreshToken(ctx, user.id, amr)
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
