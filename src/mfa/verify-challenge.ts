import type { AuthMethod } from '../amr'
import { type AuthContext, unitOfWork } from '../context'
import { findKnownDevice, type ShownDevice, tokenShown } from '../device/known-device'
import { MfaThrottledError, MfaTokenInvalidError, PasskeyRejectedError } from '../errors'
import { acceptSecondFactor, announceFactor } from '../factor/accept-code'
import { guardedAttempt } from '../factor/guarded-attempt'
import { acceptPasskey, type ProvenPasskey, provePasskey } from '../factor/prove-passkey'
import type { Locale } from '../http/locale'
import { takeUnit } from '../limits/take-unit'
import { announceLogin } from '../session/announce-login'
import { type Challenge, isStillMeant, readChallenge, spendChallenge } from '../session/challenge'
import { withClaims } from '../session/claims-of-login'
import { finishLogin, type Login, type LoginChallenge, type OpenedSession, type OpenSession } from '../session/finish-login'
import { hasYoungFactor, usableAt } from '../step-up/young-credential'
import { DuplicateRecordError, type UserRecord } from '../store/auth-store'

export interface Verification {
  mfaToken: string
  /** Of the authenticator app, or a recovery code. */
  code?: string | undefined
  /** In place of a code: `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`. */
  credential?: unknown
  /** With a credential: from the options for this `mfaToken`. */
  challenge?: string | undefined
  /** Of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** A refresh token that the client had. Of this account and not revoked: its codes are counted apart from everybody else's. */
  previousToken?: string | undefined
}

/**
 * The second step of a login: a challenge and a code make a session whose methods are the first step's and `otp`; a challenge and a passkey,
 * those and `passkey`. One challenge is good for one success, however many codes are right.
 * @param shown what the request shows of its device; left out: `previousToken` alone
 * @throws MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError, PasskeyRejectedError
 */
export async function verifyMfa<Session extends OpenedSession>(
  ctx: AuthContext,
  { mfaToken, code = '', credential, challenge: token = '', locale, previousToken }: Verification,
  open: OpenSession<Session>,
  shown?: ShownDevice,
): Promise<Session | LoginChallenge> {
  const challenge = readChallenge(ctx, mfaToken)
  const { userId, idHash } = challenge
  const seen = await ctx.store.users.find(userId)
  // A passkey of an inactive account is refused like any other that is not good.
  const isRejected = credential !== undefined && seen?.isActive === false
  if (!isStillMeant(ctx, challenge, seen)) throw isRejected ? new PasskeyRejectedError() : new MfaTokenInvalidError()
  if (credential !== undefined) {
    const result = await countedPasskey(ctx, idHash, async () => {
      const proven = await provePasskey(ctx, 'step', { userId, boundTo: idHash }, { credential, challenge: token })
      const login = withPasskey(ctx, challenge, proven)
      return (await redeem(ctx, { challenge, seen, login }, open, (ctx, user) => acceptPasskey(ctx, user, proven))).result
    })
    announceLogin(ctx, result)
    return result
  }
  const device = await findKnownDevice(ctx, seen.email, shown ?? tokenShown({ previousToken }))
  const { factor, result } = await guardedAttempt(ctx, { userId, code, device, locale }, () =>
    redeem(ctx, { challenge, seen, login: withCode(ctx, challenge, seen) }, open, (ctx, user) => acceptSecondFactor(ctx, user, code)),
  )
  announceLogin(ctx, result)
  announceFactor(ctx, seen, factor, locale)
  return result
}

/**
 * A signature cannot be guessed, but verifying costs time. So the failures of one first step are limited. Those of the account are not,
 * because an attacker who knows its password must not lock the owner out.
 */
async function countedPasskey<T>(ctx: AuthContext, idHash: string, attempt: () => Promise<T>): Promise<T> {
  const taken = await takeUnit(ctx, ctx.budgets.mfa, ['mfa_passkey:challenge', idHash], MfaThrottledError)
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof PasskeyRejectedError)) await taken.giveBack()
    throw error
  }
}

interface Redeemed<Session, Accepted> {
  factor: Accepted
  result: Session | LoginChallenge
}

/** @param accept what is shown; throws where it is not right */
async function redeem<Session extends OpenedSession, Accepted>(
  ctx: AuthContext,
  { challenge, seen, login: shown }: { challenge: Challenge; seen: UserRecord; login: Login },
  open: OpenSession<Session>,
  accept: (ctx: AuthContext, user: UserRecord) => Promise<Accepted>,
): Promise<Redeemed<Session, Accepted>> {
  const login = await withClaims(ctx, seen, shown, open)
  try {
    return await unitOfWork(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(challenge.userId)
      if (!isStillMeant(ctx, challenge, user)) throw new MfaTokenInvalidError()
      // Looked up first, so that a replay costs no code, also where the host commits what we could not roll back.
      if (await ctx.store.userTokens.find(challenge.idHash)) throw new MfaTokenInvalidError()
      const factor = await accept(ctx, user)
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
function withCode(ctx: AuthContext, first: Login, user: UserRecord): Login {
  return afterStep(first, 'otp', hasYoungFactor(ctx, user))
}

/** So does a passkey. */
function withPasskey(ctx: AuthContext, first: Login, { passkey }: ProvenPasskey): Login {
  return afterStep(first, 'passkey', usableAt(ctx, passkey.createdAt) !== null)
}

function afterStep({ amr, provider, isYoung = false, isPersistent = true }: Login, method: AuthMethod, isYoungStep: boolean): Login {
  return { amr: [...new Set<AuthMethod>([...amr, method])], provider, isYoung: isYoung || isYoungStep, isPersistent }
}
