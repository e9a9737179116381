import { type AuthContext, unitOfWork } from '../context'
import { type Locale, placeholderName } from '../http/locale'
import { unusablePassword } from '../passwords/unusable-password'
import type { OAuthUser } from '../providers/provider-client'
import { finishLogin, type OpenSession, type TokenPair } from '../session/finish-login'
import { identitiesOf, identityRecord } from './identities'
import type { SocialLogin } from './log-in-with-identity'

/** An active account with the provider's address and name, and no password anybody could use. */
export async function createAccount(
  ctx: AuthContext,
  email: string,
  profile: OAuthUser,
  open: OpenSession<TokenPair>,
  locale: Locale,
): Promise<SocialLogin> {
  const now = ctx.now()
  return unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.insert({
      email,
      hashedPassword: unusablePassword(),
      name: profile.name ?? placeholderName[locale],
      isActive: true,
      isAdmin: false,
      createdAt: now,
      updatedAt: now,
      lastLoginAt: now,
      totpSecret: null,
      totpEnabledAt: null,
      totpLastStep: null,
      // Only the provider's word that it verified the address proves it; silence does not.
      emailVerifiedAt: profile.emailVerified === true ? now : null,
      activatedAt: now,
      passwordSetAt: null,
    })
    await identitiesOf(ctx).insert(identityRecord(user.id, profile, now))
    return { result: await finishLogin(ctx, user, { amr: ['ext'], provider: profile.provider }, open), did: 'created' }
  })
}
