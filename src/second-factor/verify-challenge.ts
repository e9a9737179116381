import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { MfaThrottledError, MfaTokenInvalidError, PasskeyRejectedError } from '../core/errors'
import type { Locale } from '../http/locale'
import { askTasks } from '../login-tasks/tasks-owed'
import { acceptPasskey, type VerifiedPasskey, verifyPasskey } from '../passkeys/verify-passkey'
import { countAttempt } from '../rate-limits/rate-limiter'
import { mayProve } from '../sessions/account-state'
import { type Challenge, consumeChallenge, isStillMeant, readChallenge } from '../sessions/challenge'
import { findKnownDevice, type PresentedDevice, tokenPresented } from '../sessions/devices/device-cookie'
import { announcingRefusal } from '../sessions/devices/login-limits'
import type { AnyLoginResult, Login, LoginClient } from '../sessions/login'
import { hasYoungFactor, passkeyUsableAt } from '../sessions/reauthentication/methods'
import { type BegunLogin, finishLogin, startLogin } from '../sessions/start-login'
import { DuplicateRecordError, type UserRecord } from '../store/auth-store'
import { acceptSecondFactor, announceFactor, type Factor, isUnusedTotpCode } from './accept-code'
import { guardedAttempt } from './code-limits'

export interface ChallengeVerification {
  mfaToken: string
  /** A code of the authenticator app, or a recovery code. */
  code?: string | undefined
  /** The passkey's response instead of a code: `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`. */
  credential?: unknown
  /** Required with a credential: the `challenge` of the options for this `mfaToken`. */
  challenge?: string | undefined
  /** Language of the notices. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** An earlier refresh token. If it belongs to this account and was not revoked, the client's codes have a separate rate limit. */
  previousToken?: string | undefined
  /** True: trust the browser of the request. Left out if the response cannot set its cookie. */
  trustDevice?: boolean | undefined
}

/**
 * The session has the methods of both steps. A challenge allows one successful login, even if several right codes arrive.
 * @param presented the device of the request; without it, only `previousToken` identifies the device
 * @throws MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError, PasskeyRejectedError, the errors of `finishLogin`
 */
export async function verifyMfa(
  ctx: AuthContext,
  { mfaToken, code = '', credential, challenge: token = '', locale, previousToken, trustDevice }: ChallengeVerification,
  client: LoginClient,
  presented?: PresentedDevice,
): Promise<AnyLoginResult> {
  const challenge = readChallenge(ctx, mfaToken)
  const { userId, idHash } = challenge
  const seen = await ctx.store.users.find(userId)
  // A passkey of an inactive account gets the error of an invalid passkey.
  const isRejected = credential !== undefined && seen !== null && !mayProve(seen)
  if (!isStillMeant(ctx, challenge, seen)) throw isRejected ? new PasskeyRejectedError() : new MfaTokenInvalidError()
  if (credential !== undefined) {
    const begun = await countedPasskey(ctx, idHash, async () => {
      const proven = await verifyPasskey(ctx, 'step', { userId, boundTo: idHash }, { credential, challenge: token })
      const login = withPasskey(ctx, { ...challenge, trustsDevice: trustDevice }, proven)
      const accept = async (ctx: AuthContext, user: UserRecord) => {
        await acceptPasskey(ctx, user, proven)
        return 'passkey' as const
      }
      return (await redeem(await askTasks(ctx, seen, login), { challenge, login }, client, accept)).begun
    })
    return announcingRefusal(ctx, client, seen, () => finish(ctx, challenge, begun))
  }
  const device = await findKnownDevice(ctx, seen.email, presented ?? tokenPresented({ previousToken }))
  const { factor, begun } = await guardedAttempt(ctx, { userId, code, device, locale }, async () => {
    const login = withCode(ctx, { ...challenge, trustsDevice: trustDevice }, seen)
    // A wrong code calls no function of the host. For a recovery code, `finishLogin` asks: only its use shows that it is right.
    const asked = isUnusedTotpCode(ctx, seen, code) ? await askTasks(ctx, seen, login) : ctx
    return redeem(asked, { challenge, login }, client, (ctx, user) => acceptSecondFactor(ctx, user, code))
  })
  try {
    return await announcingRefusal(ctx, client, seen, () => finish(ctx, challenge, begun))
  } finally {
    announceFactor(ctx, seen, factor, locale) // the code is used, even if the host's claims are not available
  }
}

async function finish(ctx: AuthContext, { destination }: Challenge, begun: BegunLogin): Promise<AnyLoginResult> {
  const result = await finishLogin(ctx, begun)
  return destination && 'returnTo' in destination && result.kind === 'session' ? { ...result, returnTo: destination.returnTo } : result
}

/**
 * Limits the failures of each challenge, because verifying a passkey takes time. The account has no such limit: an attacker with the password
 * must not lock the owner out, and cannot guess a signature.
 */
async function countedPasskey<T>(ctx: AuthContext, idHash: string, attempt: () => Promise<T>): Promise<T> {
  const limit = { name: 'mfa_passkey:challenge', subject: idHash, rateLimit: ctx.rateLimits.mfa }
  const counted = await countAttempt(ctx, [limit], { Exhausted: MfaThrottledError })
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof PasskeyRejectedError)) await counted.release()
    throw error
  }
}

/** @param accept throws if the factor is wrong */
async function redeem<Accepted extends Factor>(
  ctx: AuthContext,
  { challenge, login }: { challenge: Challenge; login: Login },
  client: LoginClient,
  accept: (ctx: AuthContext, user: UserRecord) => Promise<Accepted>,
): Promise<{ factor: Accepted; begun: BegunLogin }> {
  try {
    return await transaction(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(challenge.userId)
      if (!isStillMeant(ctx, challenge, user) || !(await isStillLinked(ctx, challenge))) throw new MfaTokenInvalidError()
      // Before the code is accepted: a used challenge uses up no code, even if the host's transaction commits despite the error.
      if (await ctx.store.userTokens.find(challenge.idHash)) throw new MfaTokenInvalidError()
      const factor = await accept(ctx, user)
      await consumeChallenge(ctx, challenge)
      return { factor, begun: await startLogin(ctx, client, user, factor === 'recovery_code' ? trustingNothing(login) : login) }
    })
  } catch (error) {
    // Another request used this challenge first. The rollback makes the accepted code unused again.
    throw error instanceof DuplicateRecordError ? new MfaTokenInvalidError({ cause: error }) : error
  }
}

/** A provider of the first step that was unlinked since opens no session. */
async function isStillLinked({ store }: AuthContext, { userId, provider = null, isFromHost }: Challenge): Promise<boolean> {
  return (
    provider === null ||
    isFromHost === true ||
    (await store.identities?.listForUser(userId))?.some((linked) => linked.provider === provider) === true
  )
}

/** A recovery code is as old as its factor. */
function withCode(ctx: AuthContext, first: Login, user: UserRecord): Login {
  return afterStep(first, 'otp', hasYoungFactor(ctx, user))
}

function withPasskey(ctx: AuthContext, first: Login, proven: VerifiedPasskey): Login {
  return afterStep(first, 'passkey', passkeyUsableAt(ctx, proven) !== null)
}

/** One credential that is not young makes the session fresh, in either step. Only the second step can trust the browser. */
function afterStep(first: Login, method: AuthMethod, isYoungStep: boolean): Login {
  const { amr, provider, providerSid, isYoung = false, destination = null, isPersistent = true, isFromHost, trustsDevice } = first
  const young = isYoung && isYoungStep
  const methods = { amr: [...new Set<AuthMethod>([...amr, method])], provider, providerSid, ...(isFromHost && { isFromHost }) }
  const login = { ...methods, isYoung: young, destination, isPersistent }
  return isYoungStep ? trustingNothing({ ...login, trustsDevice }) : { ...login, trustsDevice }
}

function trustingNothing(login: Login): Login {
  return login.trustsDevice ? { ...login, trustsDevice: false } : login
}
