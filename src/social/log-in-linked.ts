import type { TakenOver } from '../accounts/take-over'
import { type AuthContext, transaction } from '../context'
import type { OAuthUser } from '../providers/provider-client'
import { type PostponedLogin, withClaims } from '../sessions/claims-of-login'
import type { Destination } from '../sessions/destination'
import { finishLogin, type LoginChallenge, type OpenedSession, type OpenSession } from '../sessions/finish-login'
import { identityUsableAt } from '../sessions/reauthentication/credential-age'
import type { UserRecord } from '../store/auth-store'
import { identitiesOf } from './identities'

/** The result of a social login, and what else happened. `logInWithIdentity` emits the events after the commit. */
export interface SocialLogin<Session extends OpenedSession> {
  result: Session | LoginChallenge | PostponedLogin
  did: 'logged_in' | 'linked' | 'created'
  /** What the login removed from an account with an unverified address (`takeOver`). */
  takenOver?: { user: UserRecord; what: TakenOver }
  /** True: the account waited for its activation until this login. */
  isActivated?: boolean
}

/**
 * Logs in by a linked identity. Returns null if someone removed the link, or deactivated the account, after `seen` was read.
 * @param linkedAt when the identity was linked: a new link can log in, but cannot confirm a sensitive change
 */
export async function logInLinked<Session extends OpenedSession>(
  ctx: AuthContext,
  seen: UserRecord,
  { provider, subject, sid: providerSid }: OAuthUser,
  { open, linkedAt, destination }: { open: OpenSession<Session>; linkedAt: Date; destination: Destination | null },
): Promise<SocialLogin<Session> | null> {
  const login = await withClaims(ctx, seen, { amr: ['ext'], provider, providerSid, destination }, open)
  return transaction(ctx, async (ctx) => {
    const user = await identitiesOf(ctx).recordLogin({ userId: seen.id, provider, subject }, ctx.now())
    if (user?.id !== seen.id) return null // an adapter can return another user's row by mistake
    // The address was verified meanwhile. If that was a take-over, the identity is young now, so the caller reads it again.
    if (user.emailVerifiedAt?.getTime() !== seen.emailVerifiedAt?.getTime()) return null
    const isYoung = identityUsableAt(ctx, user, linkedAt) !== null
    return { result: await finishLogin(ctx, user, { ...login, isYoung }, open), did: 'logged_in' }
  })
}
