import { type AuthContext, unitOfWork } from '../context'
import type { OAuthUser } from '../providers/provider-client'
import { finishLogin, type OpenSession, type TokenPair } from '../session/finish-login'
import { identitiesOf } from './identities'
import type { SocialLogin } from './log-in-with-identity'

/** Null when the link or the account's activity ended since it was looked at. */
export function logInLinked(
  ctx: AuthContext,
  userId: string,
  { provider, subject }: OAuthUser,
  open: OpenSession<TokenPair>,
): Promise<SocialLogin | null> {
  return unitOfWork(ctx, async (ctx) => {
    const user = await identitiesOf(ctx).recordLogin({ userId, provider, subject }, ctx.now())
    if (user?.id !== userId) return null // an adapter's near match is nobody
    return { result: await finishLogin(ctx, user, { amr: ['ext'], provider }, open), did: 'logged_in' }
  })
}
