import type { AuthMethod } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { findKnownDevice, type ShownDevice, tokenShown } from '../device/known-device'
import { MfaTokenInvalidError } from '../errors'
import { guardedAttempt } from '../factor/guarded-attempt'
import { acceptSecondFactor, announceFactor, type Factor } from '../factor/second-factor'
import type { Locale } from '../http/locale'
import { announceLogin } from '../session/announce-login'
import { type Challenge, isStillMeant, readChallenge, spendChallenge } from '../session/challenge'
import { withClaims } from '../session/claims-of-login'
import { finishLogin, type Login, type LoginChallenge, type OpenedSession, type OpenSession } from '../session/finish-login'
import { hasYoungFactor } from '../step-up/young-credential'
import { DuplicateRecordError, type UserRecord } from '../store/auth-store'

export interface Verification {
  mfaToken: string
  code: string
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** A refresh token that the client had. Of this account and not revoked: its codes are counted apart from everybody else's. */
  previousToken?: string | undefined
}

/**
 * The second step of a login: a challenge and a code make a session whose methods are the first step's and `otp`. One
 * challenge is good for one success, however many codes are right.
 * @param shown what the request shows of its device; left out: `previousToken` alone
 * @throws MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError
 */
export async function verifyMfa<Session extends OpenedSession>(
  ctx: AuthContext,
  { mfaToken, code, locale, previousToken }: Verification,
  open: OpenSession<Session>,
  shown?: ShownDevice,
): Promise<Session | LoginChallenge> {
  const challenge = readChallenge(ctx, mfaToken)
  const { userId } = challenge
  const seen = await ctx.store.users.find(userId)
  if (!isStillMeant(ctx, challenge, seen)) throw new MfaTokenInvalidError()
  const device = await findKnownDevice(ctx, seen.email, shown ?? tokenShown({ previousToken }))
  const { factor, result } = await guardedAttempt(ctx, { userId, code, device, locale }, () => redeem(ctx, { challenge, seen }, code, open))
  announceLogin(ctx, result)
  announceFactor(ctx, seen, factor, locale)
  return result
}

interface Redeemed<Session> {
  factor: Factor
  result: Session | LoginChallenge
}

async function redeem<Session extends OpenedSession>(
  ctx: AuthContext,
  { challenge, seen }: { challenge: Challenge; seen: UserRecord },
  code: string,
  open: OpenSession<Session>,
): Promise<Redeemed<Session>> {
  const login = await withClaims(ctx, seen, withCode(ctx, challenge, seen), open)
  try {
    return await unitOfWork(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(challenge.userId)
      if (!isStillMeant(ctx, challenge, user)) throw new MfaTokenInvalidError()
      // Looked up first, so that a replay costs no code, also where the host commits what we could not roll back.
      if (await ctx.store.userTokens.find(challenge.idHash)) throw new MfaTokenInvalidError()
      const factor = await acceptSecondFactor(ctx, user, code)
      await spendChallenge(ctx, challenge)
      return { factor, result: withReturnTo(challenge, await finishLogin(ctx, user, login, open)) }
    })
  } catch (error) {
    // Somebody was first, with this very challenge: the code that was accepted here is unspent again.
    throw error instanceof DuplicateRecordError ? new MfaTokenInvalidError({ cause: error }) : error
  }
}

function withReturnTo<Session extends OpenedSession>(
  { destination }: Challenge,
  result: Session | LoginChallenge,
): Session | LoginChallenge {
  return destination && 'returnTo' in destination && result.kind === 'session' ? { ...result, returnTo: destination.returnTo } : result
}

/** A factor that was added within a day signs in, and proves nothing else. */
function withCode(ctx: AuthContext, { amr, provider, isYoung = false, isPersistent = true }: Login, user: UserRecord): Login {
  return { amr: [...new Set<AuthMethod>([...amr, 'otp'])], provider, isYoung: isYoung || hasYoungFactor(ctx, user), isPersistent }
}
