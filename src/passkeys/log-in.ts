import { type AuthContext, transaction } from '../context'
import { AppError, PasskeyRejectedError } from '../core/errors'
import { announceFailedLogin, newLoginAttempt } from '../sessions/announce-failed-login'
import { takeLoginOfClient } from '../sessions/devices/login-limits'
import type { AnyLoginResult, Login, LoginClient } from '../sessions/login'
import { usableAt } from '../sessions/reauthentication/credential-age'
import { finishLogin, startLogin } from '../sessions/start-login'
import type { PasskeyOptions } from './options'
import { issuePasskeyChallenge } from './passkey-challenge'
import { passkeyToolsOf, refusingReplay, type VerifiedPasskey, verifyPasskey } from './verify-passkey'
import type { PasskeyRequestOptions } from './webauthn/ceremonies'

const secondsInPage = 12 * 3600

/**
 * Returns the options with which a browser can log in with any passkey of this site. The options reveal nothing about an account. Nothing
 * is stored.
 * @param options.isInPage true for the sign-in page, which may wait for hours on a sleeping machine. The page renews the options in time, but
 *   not while the machine sleeps
 */
export function passkeyLoginOptions(ctx: AuthContext, { isInPage } = { isInPage: false }): PasskeyOptions<PasskeyRequestOptions> {
  const { challenge, token, seconds } = issuePasskeyChallenge(ctx, 'login', null, {}, isInPage ? secondsInPage : undefined)
  return { options: passkeyToolsOf(ctx).webauthn.requestOptions({ challenge, seconds }), challenge: token }
}

export interface PasskeyLogin {
  /** `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`. */
  credential: unknown
  /** The `challenge` of the options. */
  challenge: string
  /** The client's key for its rate limit: an IPv4 address, or the first 64 bits of an IPv6 address. Left out: no client is counted. */
  client?: string | null | undefined
  /** False: the session's cookies end when the browser closes. Default true. */
  isPersistent?: boolean | undefined
}

/**
 * Logs in with a passkey. The authenticator verified its user, so the passkey counts as two factors, and the login needs no second step.
 * @throws PasskeyRejectedError, LoginThrottledError, the errors of `finishLogin`
 */
export async function logInWithPasskey(
  ctx: AuthContext,
  { credential, challenge, client = undefined, isPersistent = true }: PasskeyLogin,
  loginClient: LoginClient,
): Promise<AnyLoginResult> {
  const attempt = newLoginAttempt(client ?? null)
  const taken = await takeLoginOfClient(ctx, client ?? null)
  try {
    const proven = await verifyPasskey(ctx, 'login', null, { credential, challenge })
    attempt.userId = proven.user.id
    const result = await finish(ctx, proven, isPersistent, loginClient)
    await taken.succeed()
    return result
  } catch (error) {
    await (error instanceof PasskeyRejectedError ? taken.fail() : taken.giveBack())
    if (error instanceof AppError) announceFailedLogin(ctx, attempt, { reason: error.code })
    throw error
  }
}

async function finish(
  ctx: AuthContext,
  { passkey, use, used }: VerifiedPasskey,
  isPersistent: boolean,
  client: LoginClient,
): Promise<AnyLoginResult> {
  const isYoung = usableAt(ctx, passkey.createdAt) !== null // a new passkey can log in, but the session is not fresh
  const login: Login = { amr: ['passkey'], provider: null, isYoung, isPersistent }
  const begun = await refusingReplay(() =>
    transaction(ctx, async (ctx) => {
      const user = await passkeyToolsOf(ctx).passkeys.recordLogin(use, used)
      if (!user) throw new PasskeyRejectedError()
      return startLogin(ctx, client, user, login)
    }),
  )
  return finishLogin(ctx, begun)
}
