import type { TakenOver } from '../accounts/take-over'
import { type AuthContext, transaction } from '../context'
import type { Locale } from '../http/locale'
import { unusablePassword } from '../passwords/verify-password'
import type { OAuthUser } from '../providers/provider-client'
import type { Destination } from '../sessions/destination'
import type { LoginClient } from '../sessions/login'
import { identityUsableAt } from '../sessions/reauthentication/methods'
import { type BegunLogin, startLogin } from '../sessions/start-login'
import type { UserRecord } from '../store/auth-store'
import { newUser } from '../store/user-records'
import { identitiesOf, identityRecord } from './identities'

/** The result of a social login, and what else happened. `logInWithIdentity` emits the events after the commit. */
export interface SocialLogin {
  begun: BegunLogin
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
export async function logInLinked(
  ctx: AuthContext,
  seen: UserRecord,
  { provider, subject, sid: providerSid }: OAuthUser,
  { client, linkedAt, destination }: { client: LoginClient; linkedAt: Date; destination: Destination | null },
): Promise<SocialLogin | null> {
  return transaction(ctx, async (ctx) => {
    const user = await identitiesOf(ctx).recordLogin({ userId: seen.id, provider, subject }, ctx.now())
    if (user?.id !== seen.id) return null // an adapter can return another user's row by mistake
    // The address was verified meanwhile. If that was a take-over, the identity is young now, so the caller reads it again.
    if (user.emailVerifiedAt?.getTime() !== seen.emailVerifiedAt?.getTime()) return null
    const isYoung = identityUsableAt(ctx, user, linkedAt) !== null
    const login = { amr: ['ext'], provider, providerSid, isYoung, destination } as const
    return { begun: await startLogin(ctx, client, user, login), did: 'logged_in' }
  })
}

/** Creates an active account with the provider's address and name, and without a usable password. */
export async function createAccount(
  ctx: AuthContext,
  email: string,
  profile: OAuthUser,
  client: LoginClient,
  locale: Locale,
): Promise<SocialLogin> {
  const now = ctx.now()
  return transaction(ctx, async (ctx) => {
    const account = newUser(now, {
      email,
      hashedPassword: unusablePassword(),
      name: profile.name ?? ctx.texts.say(locale, 'account.placeholder_name'),
      lastLoginAt: now,
      // The address is verified only if the provider says so.
      emailVerifiedAt: profile.emailVerified === true ? now : null,
    })
    const user = await ctx.store.users.insert(account, { by: 'provider', profile })
    await identitiesOf(ctx).insert(identityRecord(user.id, profile, now))
    const login = { amr: ['ext'], provider: profile.provider, providerSid: profile.sid } as const
    return { begun: await startLogin(ctx, client, user, login), did: 'created' }
  })
}
