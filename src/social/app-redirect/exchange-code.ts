import { type AuthContext, transaction } from '../../context'
import { AppError, OAuthCodeInvalidError } from '../../core/errors'
import { hashOpaqueToken, isOpaqueToken } from '../../core/opaque-token'
import { isAccountDigest } from '../../sessions/account-digest'
import { announceFailedLogin, type LoginAttempt, newLoginAttempt } from '../../sessions/announce-failed-login'
import type { LoginClient, LoginResult } from '../../sessions/login'
import { type BegunLogin, finishLogin, startLogin } from '../../sessions/start-login'
import type { UserTokenRecord } from '../../store/auth-store'
import { codeChallengeOf, isCodeVerifier } from './code-challenge'
import { type Grant, readGrant } from './issue-code'
import { endWhatItGave, leaveReceipt } from './receipt'

export interface OAuthCodeExchange {
  /** The code in the URL that opened the app. */
  code: string
  /** The app's secret. The app sent the challenge of this secret together with `redirect_to`. */
  codeVerifier: string
}

/**
 * Begins the session of a code, or returns the challenge of a second factor. A refused exchange also uses the code up. A second exchange
 * revokes the session of the first exchange.
 * @throws OAuthCodeInvalidError for an unknown, used or expired code, for a wrong verifier, or if the account has changed
 * @throws ServiceUnavailableError when the host's claims are not available; the code is then used too; UnauthorizedError as
 *   `finishLogin`
 * @see RFC 6749 section 4.1.2, RFC 7636 section 4.6
 */
export async function exchangeCode(
  ctx: AuthContext,
  { code, codeVerifier }: OAuthCodeExchange,
  client: LoginClient,
  attempt: LoginAttempt = newLoginAttempt(null),
): Promise<LoginResult> {
  const row = isOpaqueToken(code) ? await ctx.store.userTokens.find(hashOpaqueToken(code)) : null
  attempt.userId = row?.userId ?? null
  const exchanged = row && (await exchangeOnce(ctx, row, { code, codeVerifier }, client))
  if (!exchanged) {
    if (isOpaqueToken(code)) await endWhatItGave(ctx, code)
    announceFailedLogin(ctx, attempt, { reason: OAuthCodeInvalidError.code })
    throw new OAuthCodeInvalidError()
  }
  const { begun, provider } = exchanged
  // A challenge is not announced here, because the login in the browser has already announced it.
  if (begun.result.kind === 'challenge') return begun.result
  try {
    return (await finishLogin(ctx, begun, provider === null ? {} : { provider })) as LoginResult // the client gets tokens
  } catch (error) {
    if (error instanceof AppError) announceFailedLogin(ctx, attempt, { reason: error.code })
    throw error
  }
}

/**
 * Exchanges the code. Returns null if the exchange is refused, and then the code is used up too. Locks the user's row first, like every
 * operation that revokes a person's codes.
 */
async function exchangeOnce(
  ctx: AuthContext,
  row: UserTokenRecord,
  { code, codeVerifier }: OAuthCodeExchange,
  client: LoginClient,
): Promise<{ begun: BegunLogin; provider: string | null } | null> {
  const { userId, tokenHash } = row
  return transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    const taken = await ctx.store.userTokens.consume(tokenHash, 'OAUTH_CODE', ctx.now())
    const grant = taken && readGrant(taken)
    if (!user?.isActive || !grant || !isAccountDigest(ctx.keys.state, user, grant.digest) || !isOfGrant(grant, codeVerifier)) return null
    const { amr, provider, providerSid, isYoung = false } = grant
    const begun = await startLogin(ctx, client, user, { amr, provider, providerSid, isYoung })
    await leaveReceipt(ctx, code, begun)
    return { begun, provider }
  })
}

function isOfGrant({ codeChallenge }: Grant, codeVerifier: string): boolean {
  return isCodeVerifier(codeVerifier) && codeChallengeOf(codeVerifier) === codeChallenge
}
