import Joi from 'joi'
import { hostGuard } from '../accounts/host-guard'
import { type CaptchaField, captchaField, captchaRefusals, requireCaptcha } from '../captcha/require-captcha'
import { type AuthContext, transaction } from '../context'
import { clientOf } from '../core/client-key'
import { AppError, LoginThrottledError, PasskeyRejectedError, TooManyRequestsError } from '../core/errors'
import type { Route } from '../http/routes'
import { sendJson, setResult } from '../http/send'
import { askTasks } from '../login-tasks/tasks-owed'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { passkeyFields } from '../second-factor/irreversible-code'
import { isRefusedByState, stateRefusals } from '../sessions/account-state'
import { announceFailedLogin, countLoginOfClient, newLoginAttempt } from '../sessions/devices/login-limits'
import type { AnyLoginResult, Login, LoginClient } from '../sessions/login'
import { type LoginOperation, loginRoute, sessionLoginRoute } from '../sessions/login-route'
import { publicOperation } from '../sessions/operation'
import { passkeyUsableAt } from '../sessions/reauthentication/methods'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { finishLogin, startLogin } from '../sessions/start-login'
import type { UserRecord } from '../store/auth-store'
import { issuePasskeyChallenge, loginOptionsSchema, optionsBody, type PasskeyOptions } from './passkey-challenge'
import { acceptPasskey, passkeyToolsOf, refusingReplay, type VerifiedPasskey, verifyPasskey } from './verify-passkey'
import type { PasskeyRequestOptions } from './webauthn/ceremonies'

interface LoginBody extends CaptchaField {
  credential: object
  challenge_token: string
  remember: boolean
}

const credentials = Joi.object<LoginBody>({ ...passkeyFields, remember: Joi.boolean().optional().default(true) })

const passkeyLogin = (ctx: AuthContext): LoginOperation<LoginBody> => ({
  path: '/passkeys/login',
  describes: {
    summary: 'Log in with a passkey',
    refuses: [PasskeyRejectedError, LoginThrottledError, TooManyRequestsError, ...stateRefusals(ctx), ...captchaRefusals(ctx)],
  },
  // `hostGuard` already includes the rate limit of the route.
  before: ctx.guardRequest ? hostGuard(ctx, 'login', 'passkey_login') : [routeRateLimit(ctx, 'passkey_login')],
  body: credentials.append<LoginBody>(captchaField(ctx)),
  hidesAccount: true,
  run: async (ctx, req, { credential, challenge_token: challenge, remember, captcha }, client) => {
    await requireCaptcha(ctx, req, 'login', captcha)
    return logInWithPasskey(ctx, { credential, challenge, client: clientOf(req), isPersistent: remember }, client)
  },
})

export function passkeyLoginRoutes(ctx: AuthContext, set: RouteSet): Route[] {
  // The options are equal for every `tokenDelivery`, so one route is enough.
  return [...(set.base === '' ? [optionsRoute(ctx)] : []), loginRoute(ctx, set, passkeyLogin(ctx))]
}

export function sessionPasskeyLoginRoute(ctx: AuthContext): Route[] {
  return sessionLoginRoute(ctx, passkeyLogin(ctx))
}

function optionsRoute(ctx: AuthContext): Route {
  return publicOperation(ctx, {
    method: 'POST',
    path: '/passkeys/login/options',
    summary: 'Get the options to log in with a passkey',
    answers: [
      {
        status: 200,
        description: 'The options for `navigator.credentials.get()`, valid for 15 minutes.',
        schema: loginOptionsSchema,
      },
    ],
    limit: 'passkey_login_options',
    body: Joi.object<object>({}),
    handle: (_req, res) => {
      const begun = passkeyLoginOptions(ctx)
      setResult(res, begun)
      sendJson(res, 200, optionsBody(begun))
    },
  })
}

const secondsInPage = 12 * 3600

/**
 * For any passkey of this site: reveals nothing about an account. Stores nothing.
 * @param options.isInPage for the sign-in page, which renews the options in time, but not while the machine sleeps for hours
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

/** The authenticator verified its user, so the passkey counts as two factors, and no second step is needed. */
export async function logInWithPasskey(
  ctx: AuthContext,
  { credential, challenge, client = undefined, isPersistent = true }: PasskeyLogin,
  loginClient: LoginClient,
): Promise<AnyLoginResult> {
  const attempt = newLoginAttempt(client ?? null)
  const attempts = await countLoginOfClient(ctx, client ?? null)
  try {
    const proven = await verifyPasskey(ctx, 'login', null, { credential, challenge })
    attempt.userId = proven.user.id
    const result = await finish(ctx, proven, isPersistent, loginClient)
    await attempts.succeed()
    return result
  } catch (error) {
    await (error instanceof PasskeyRejectedError ? attempts.fail() : attempts.release())
    if (error instanceof AppError) announceFailedLogin(ctx, attempt, { reason: error.code })
    throw error
  }
}

async function finish(ctx: AuthContext, proven: VerifiedPasskey, isPersistent: boolean, client: LoginClient): Promise<AnyLoginResult> {
  const { use, used } = proven
  const isYoung = passkeyUsableAt(ctx, proven) !== null // a new passkey can log in, but the session is not fresh
  const login: Login = { amr: ['passkey'], provider: null, isYoung, isPersistent }
  const asked = await askTasks(ctx, proven.user, login)
  const begun = await refusingReplay(() =>
    transaction(asked, async (ctx) => {
      const user = proven.user.isActive ? await passkeyToolsOf(ctx).passkeys.recordLogin(use, used) : await holdRefused(ctx, proven)
      if (!user) throw new PasskeyRejectedError()
      return startLogin(ctx, client, user, login)
    }),
  )
  return finishLogin(ctx, begun)
}

/** The account opens no session, so no time of a login is written. Null: it was opened meanwhile. */
async function holdRefused(ctx: AuthContext, proven: VerifiedPasskey): Promise<UserRecord | null> {
  const user = await ctx.store.users.lock(proven.user.id)
  if (!user || !isRefusedByState(user)) return null
  await acceptPasskey(ctx, user, proven)
  return user
}
