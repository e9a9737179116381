import Joi from 'joi'
import { type CaptchaField, captchaField, captchaRefusals, requireCaptcha } from '../captcha/require-captcha'
import { type AuthContext, transaction } from '../context'
import { clientOf, queueNetwork } from '../core/client-key'
import {
  AppError,
  EmailLinkForbiddenError,
  InvalidCredentialsError,
  InvalidTokenError,
  LoginThrottledError,
  TokenExpiredError,
  TooManyRequestsError,
  ValidationError,
} from '../core/errors'
import { describeError, type Logger } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import { readTypedAddress, typedAddress } from '../http/email-address'
import { passwordText, text } from '../http/input'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { askTasks } from '../login-tasks/tasks-owed'
import type { HashOptions } from '../passwords/password-types'
import { hashPassword, verifyPassword } from '../passwords/verify-password'
import { isRefusedByState, mayProve, stateRefusals } from '../sessions/account-state'
import { findKnownDevice, type PresentedDevice, presentedDevice, previousToken, tokenPresented } from '../sessions/devices/device-cookie'
import { announceFailedLogin, countLogin, type LoginAttempt, newLoginAttempt } from '../sessions/devices/login-limits'
import type { AnyLoginResult, Login, LoginClient } from '../sessions/login'
import { type LoginOperation, loginRoute, sessionLoginRoute } from '../sessions/login-route'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { type BegunLogin, finishLogin, startLogin } from '../sessions/start-login'
import type { UserRecord } from '../store/auth-store'
import { findByAddress } from './email-links/email-link'
import { signupOwnershipOf } from './email-verification/signup-ownership'
import { hostGuard } from './host-guard'
import { hasMailedCodes } from './mailed-codes/code-request'
import { type LinkOrCodeBody, linkOrCode, needsLinkOrCode, presentedBy, redeem, withCode } from './mailed-codes/redeem-code'
import { resetPassword } from './reset-password'

interface LoginBody extends CaptchaField {
  email: string
  password: string
  previous_token?: string
  remember: boolean
}

interface ResetBody extends LinkOrCodeBody {
  new_password: string
  /** The old one. If nobody has verified the address, it shows that the person created the account. */
  password?: string
  refresh_token?: string
}

const credentials = Joi.object<LoginBody>({
  email: typedAddress,
  password: passwordText(),
  ...previousToken,
  // True: the cookies last as long as the session. False: the browser deletes the cookies when it closes.
  remember: Joi.boolean().optional().default(true),
})

const passwordLogin = (ctx: AuthContext): LoginOperation<LoginBody> => ({
  path: '/login',
  describes: {
    summary: 'Log in with email and password',
    refuses: [InvalidCredentialsError, LoginThrottledError, ...stateRefusals(ctx), ...captchaRefusals(ctx)],
  },
  before: hostGuard(ctx, 'login', 'login'),
  body: credentials.append<LoginBody>(captchaField(ctx)),
  hidesAccount: true,
  run: async (ctx, req, { email, password, remember, captcha, ...body }, client) => {
    await requireCaptcha(ctx, req, 'login', captcha)
    return logIn(ctx, { email, password, client: clientOf(req), isPersistent: remember }, client, presentedDevice(ctx, req, body))
  },
})

const passwordReset = (ctx: AuthContext): LoginOperation<ResetBody> => ({
  path: '/password-reset/confirm',
  describes: {
    summary: `${withCode(ctx, 'Set a new password with the mailed link')}, and log in`,
    refuses: [InvalidTokenError, InvalidCredentialsError, TokenExpiredError, EmailLinkForbiddenError, TooManyRequestsError],
    ...needsLinkOrCode(ctx),
  },
  limit: 'password_reset_confirm',
  ...(hasMailedCodes(ctx) && { hidesAccount: true }),
  body: Joi.object<ResetBody>({
    ...linkOrCode(ctx),
    new_password: passwordText().allow(''),
    password: passwordText().allow('').optional(),
    refresh_token: text(4096).optional(),
  }),
  endsSessions: true,
  run: async (ctx, req, { new_password: newPassword, ...body }, client) => {
    const presented = presentedBy(ctx, req, 'PASSWORD_RESET', body)
    const reset = { newPassword, locale: localeOf(ctx, req), evidence: await signupOwnershipOf(ctx, req, body) }
    return redeem(ctx, presented, (token) => resetPassword(ctx, { ...reset, token }, client))
  },
})

export function loginRoutes(ctx: AuthContext, set: RouteSet): Route[] {
  return [loginRoute(ctx, set, passwordLogin(ctx)), loginRoute(ctx, set, passwordReset(ctx))]
}

export function sessionLoginRoutes(ctx: AuthContext): Route[] {
  return sessionLoginRoute(ctx, passwordLogin(ctx), 'Log in with email and password, and get a session cookie')
}

export interface LoginInput {
  email: string
  password: string
  /** The client's IP address, for its rate limit (IPv6: the first 64 bits). Undefined: only the limit of the email address applies. */
  client?: string | null | undefined
  /** A refresh token of the client. If it belongs to this account and was not revoked, attempts with it have a separate rate limit. */
  previousToken?: string | undefined
  /** If false, the browser deletes the session cookies when it closes. Default true. */
  isPersistent?: boolean | undefined
}

/**
 * A challenge waits for the second factor. A wrong password, an unknown address and an inactive account cause the same error after the same
 * work. Counts before it verifies the password; all kinds of sessions share this rate limit.
 * @param presented if undefined, only `previousToken` identifies the device
 * @throws InvalidCredentialsError, LoginThrottledError; ServiceUnavailableError if too many checks wait; the errors of `finishLogin`
 */
export async function logIn(
  ctx: AuthContext,
  input: LoginInput,
  loginClient: LoginClient,
  presented?: PresentedDevice,
): Promise<AnyLoginResult> {
  const email = readTypedAddress(input.email)
  const attempt = newLoginAttempt(input.client ?? null, email)
  const attempts = await countLogin(ctx, { email, client: input.client ?? null, presented: presented ?? tokenPresented(input) })
  try {
    const { client } = input
    const turn = { isKnownDevice: attempts.isKnownDevice, network: queueNetwork(client) }
    const isKnownDevice = presented && (async (ctx: AuthContext) => (await findKnownDevice(ctx, email, presented)) !== null)
    const result = await checkPasswordAndLogIn(
      ctx,
      { ...input, email },
      { attempt, turn, ...(isKnownDevice && { isKnownDevice }) },
      loginClient,
    )
    await attempts.succeed()
    return result
  } catch (error) {
    await (error instanceof InvalidCredentialsError ? attempts.fail() : attempts.release())
    if (error instanceof AppError) announceFailedLogin(ctx, attempt, { reason: error.code })
    throw error
  }
}

/** Another login may store a better hash of the same password meanwhile. Then tries once more. */
async function checkPasswordAndLogIn(
  ctx: AuthContext,
  { email, password, isPersistent = true }: LoginInput,
  { attempt, turn, ...device }: { attempt: LoginAttempt; turn: HashOptions } & Pick<Login, 'isKnownDevice'>,
  client: LoginClient,
): Promise<AnyLoginResult> {
  for (let round = 1; round <= 2; round++) {
    const user = await findByAddress(ctx, email)
    attempt.userId = user?.id ?? null
    const { matches, needsRehash } = await verifyPassword(ctx, user?.hashedPassword ?? null, password, turn)
    if (!user || !matches || !mayProve(user)) break
    const rehashed = needsRehash && user.isActive ? await rehash(ctx, password, turn) : null
    const login: Login = { amr: ['pwd'], provider: null, isPersistent, ...device }
    const asked = await askTasks(ctx, user, login, client.browser)
    const start = (changes: { hashedPassword?: string }) =>
      transaction(asked, async (ctx) => {
        const held = user.isActive ? await ctx.store.users.recordLogin(user, ctx.now(), changes) : await holdRefused(ctx, user)
        return held && startLogin(ctx, client, held, login)
      })
    const begun = rehashed === null ? await start({}) : await keepingOldHash(ctx, start, rehashed)
    if (begun) return finishLogin(ctx, begun)
  }
  throw new InvalidCredentialsError()
}

/** The account opens no session, so no time of a login is written. Null: the account changed since it was read. */
async function holdRefused(ctx: AuthContext, seen: UserRecord): Promise<UserRecord | null> {
  const user = await ctx.store.users.lock(seen.id)
  return user && isRefusedByState(user) && user.hashedPassword === seen.hashedPassword ? user : null
}

/** If the column is too short for the new hash, the old hash stays. */
async function keepingOldHash(
  ctx: AuthContext,
  start: (changes: { hashedPassword?: string }) => Promise<BegunLogin | null>,
  hashedPassword: string,
): Promise<BegunLogin | null> {
  try {
    return await start({ hashedPassword })
  } catch (error) {
    // Not caused by the new hash: the store was busy, or rejected the login for another reason.
    if (error instanceof AppError && !(error instanceof ValidationError)) throw error
    const begun = await start({})
    warnOfLostRehash(ctx, error)
    return begun
  }
}

const warned = new WeakSet<Logger>()

/** Once for each router, because all accounts have the same cause. The store's error names the column. */
function warnOfLostRehash({ logger }: AuthContext, error: unknown): void {
  if (warned.has(logger)) return
  warned.add(logger)
  const reason = error instanceof Error && error.name === 'DriverError' ? error.message : 'The database refused the new hash'
  logger.warn(
    { error: describeError(error) },
    `doorward: a new password hash could not be stored, so the old hash stays, and logins still work. ${reason}. ${seeTroubleshooting('a-new-hash-could-not-be-stored')}`,
  )
}

/** Null if hashing fails, because the login must not fail for this reason. */
async function rehash(ctx: AuthContext, password: string, turn: HashOptions): Promise<string | null> {
  try {
    return await hashPassword(ctx, password, turn)
  } catch (error) {
    ctx.logger.warn({ error: describeError(error) }, 'doorward: a password could not be hashed again; the old hash stays')
    return null
  }
}
