import { type AuthContext, transaction } from '../../context'
import type { AuthMethod } from '../../core/amr'
import { MfaTokenInvalidError } from '../../core/errors'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import { accountDigest, isStillMeant, readChallenge } from '../../sessions/challenge'
import type { AppDestination } from '../../sessions/destination'
import { after } from '../../sessions/find-session'
import type { Login } from '../../sessions/login'
import type { UserRecord, UserTokenRecord } from '../../store/auth-store'

const codeSeconds = 60

export interface Grant extends Pick<Login, 'amr' | 'provider' | 'providerSid' | 'isYoung' | 'passwordRequired'> {
  readonly codeChallenge: string | null
  /** `accountDigest` when the code was made. */
  readonly digest: string
}

/** The app asks for the second factor after the exchange. @throws MfaTokenInvalidError if the account has changed meanwhile */
export function codeOfChallenge(ctx: AuthContext, app: AppDestination, mfaToken: string): Promise<string> {
  const challenge = readChallenge(ctx, mfaToken)
  return transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(challenge.userId)
    if (!isStillMeant(ctx, challenge, user)) throw new MfaTokenInvalidError()
    return issueAppCode(ctx, user, challenge, app)
  })
}

export function readGrant({ payload }: Pick<UserTokenRecord, 'payload'>): Grant {
  return JSON.parse(payload ?? '{}') as Grant
}

/** Call it in a transaction that has locked the user's row. The database gets only the hash of the code. */
export async function issueAppCode(
  ctx: AuthContext,
  user: UserRecord,
  { amr, provider, providerSid, isYoung = false, passwordRequired }: { amr: readonly AuthMethod[] } & Login,
  { codeChallenge }: AppDestination,
): Promise<string> {
  const [now, code] = [ctx.now(), newOpaqueToken()]
  // `exchangeCode` computes the digest from the stored row, which can have less than `user` in memory.
  const stored = (await ctx.store.users.find(user.id)) ?? user
  const digest = accountDigest(ctx.keys.state[0], stored)
  const grant: Grant = { amr, provider, providerSid, isYoung, ...(passwordRequired && { passwordRequired }), codeChallenge, digest }
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash: hashOpaqueToken(code),
    purpose: 'OAUTH_CODE',
    payload: JSON.stringify(grant),
    expiresAt: after(now, codeSeconds),
    usedAt: null,
    createdAt: now,
  })
  return code
}
