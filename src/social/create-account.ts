import { type AuthContext, transaction } from '../context'
import type { Locale } from '../http/locale'
import { unusablePassword } from '../passwords/unusable-password'
import type { OAuthUser } from '../providers/provider-client'
import type { LoginClient } from '../sessions/login'
import { startLogin } from '../sessions/start-login'
import { newUser } from '../store/new-user'
import { identitiesOf, identityRecord } from './identities'
import type { SocialLogin } from './log-in-linked'

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
