import type { AuthMethod } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { MfaTokenInvalidError } from '../errors'
import type { Locale } from '../http/locale'
import { announceLogin } from '../session/announce-login'
import { type Challenge, isStillMeant, readChallenge } from '../session/challenge'
import { finishLogin, type Login, type LoginChallenge, type OpenedSession, type OpenSession } from '../session/finish-login'
import { DuplicateRecordError } from '../store/auth-store'
import { guardedAttempt } from './guarded-attempt'
import { acceptSecondFactor, announceFactor, type Factor } from './second-factor'

export interface Verification {
  mfaToken: string
  code: string
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * The second step of a login: a challenge and a code make a session whose methods are the first step's and `otp`. One
 * challenge is good for one success, however many codes are right.
 * @throws MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError
 */
export async function verifyMfa<Session extends OpenedSession>(
  ctx: AuthContext,
  { mfaToken, code, locale }: Verification,
  open: OpenSession<Session>,
): Promise<Session | LoginChallenge> {
  const challenge = readChallenge(ctx, mfaToken)
  const { userId } = challenge
  const seen = await ctx.store.users.find(userId)
  if (!isStillMeant(ctx, challenge, seen)) throw new MfaTokenInvalidError()
  const { factor, result } = await guardedAttempt(ctx, userId, () => redeem(ctx, challenge, code, open))
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
  challenge: Challenge,
  code: string,
  open: OpenSession<Session>,
): Promise<Redeemed<Session>> {
  try {
    return await unitOfWork(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(challenge.userId)
      if (!isStillMeant(ctx, challenge, user)) throw new MfaTokenInvalidError()
      // Looked up first, so that a replay costs no code, also where the host commits what we could not roll back.
      if (await ctx.store.userTokens.find(challenge.idHash)) throw new MfaTokenInvalidError()
      const factor = await acceptSecondFactor(ctx, user, code)
      await spend(ctx, challenge)
      return { factor, result: await finishLogin(ctx, user, withCode(challenge), open) }
    })
  } catch (error) {
    // Somebody was first, with this very challenge: the code that was accepted here is unspent again.
    throw error instanceof DuplicateRecordError ? new MfaTokenInvalidError({ cause: error }) : error
  }
}

function withCode({ amr, provider }: Login): Login {
  return { amr: [...new Set<AuthMethod>([...amr, 'otp'])], provider }
}

/** Born used: the unique hash is what lets one of any number of racers through. @throws DuplicateRecordError */
async function spend(ctx: AuthContext, { userId, idHash, expiresAt }: Challenge): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId,
    tokenHash: idHash,
    purpose: 'MFA_CHALLENGE',
    payload: null,
    expiresAt,
    usedAt: now,
    createdAt: now,
  })
}
