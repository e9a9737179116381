import { type AuthContext, transaction } from '../context'
import { queueNetwork } from '../core/client-key'
import { AppError, InvalidCredentialsError, ValidationError } from '../core/errors'
import { describeError, type Logger } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import { readTypedAddress } from '../http/email-address'
import { hashPassword } from '../passwords/hash-password'
import type { HashOptions } from '../passwords/password-types'
import { verifyPassword } from '../passwords/verify-password'
import { announceFailedLogin, type LoginAttempt, newLoginAttempt } from '../sessions/announce-failed-login'
import { type PresentedDevice, tokenPresented } from '../sessions/devices/known-device'
import { takeLogin } from '../sessions/devices/login-limits'
import type { AnyLoginResult, Login, LoginClient } from '../sessions/login'
import { type BegunLogin, finishLogin, startLogin } from '../sessions/start-login'
import { findByAddress } from './email-links/find-by-address'

export interface LoginInput {
  email: string
  password: string
  /**
   * The IP address of the client, for the client's rate limit. For IPv6, only the first 64 bits count. If undefined, only the rate limit of
   * the email address applies.
   */
  client?: string | null | undefined
  /**
   * A refresh token that the client had. If the token belongs to this account and was not revoked, attempts with the token have a separate
   * rate limit.
   */
  previousToken?: string | undefined
  /** If false, the browser deletes the session cookies when it closes. Default true. */
  isPersistent?: boolean | undefined
}

/**
 * Logs in with email and password. Returns a session, or a challenge: the login then waits for its second factor. A wrong password, an
 * unknown address and an inactive account cause the same error after the same work. The function counts the attempt against the rate limit
 * before it verifies the password. All kinds of sessions share this rate limit.
 * @param presented what the request shows about its device; if undefined, only `previousToken` identifies the device
 * @throws InvalidCredentialsError, LoginThrottledError; ServiceUnavailableError if too many password checks wait; the errors of `finishLogin`
 */
export async function logIn(
  ctx: AuthContext,
  input: LoginInput,
  loginClient: LoginClient,
  presented?: PresentedDevice,
): Promise<AnyLoginResult> {
  const email = readTypedAddress(input.email)
  const attempt = newLoginAttempt(input.client ?? null, email)
  const taken = await takeLogin(ctx, { email, client: input.client ?? null, presented: presented ?? tokenPresented(input) })
  try {
    const { client } = input
    const turn = { isKnownDevice: taken.isKnownDevice, network: queueNetwork(client) }
    const result = await checkPasswordAndLogIn(ctx, { ...input, email }, { attempt, turn }, loginClient)
    await taken.succeed()
    return result
  } catch (error) {
    await (error instanceof InvalidCredentialsError ? taken.fail() : taken.giveBack())
    if (error instanceof AppError) announceFailedLogin(ctx, attempt, { reason: error.code })
    throw error
  }
}

/**
 * Verifies the password and logs in. Another login may store a better hash of the same password between the read and the write. In that
 * case, the function tries once more.
 */
async function checkPasswordAndLogIn(
  ctx: AuthContext,
  { email, password, isPersistent = true }: LoginInput,
  { attempt, turn }: { attempt: LoginAttempt; turn: HashOptions },
  client: LoginClient,
): Promise<AnyLoginResult> {
  for (let round = 1; round <= 2; round++) {
    const user = await findByAddress(ctx, email)
    attempt.userId = user?.id ?? null
    const { matches, needsRehash } = await verifyPassword(ctx, user?.hashedPassword ?? null, password, turn)
    if (!user?.isActive || !matches) break
    const rehashed = needsRehash ? await rehash(ctx, password, turn) : null
    const login: Login = { amr: ['pwd'], provider: null, isPersistent }
    const start = (changes: { hashedPassword?: string }) =>
      transaction(ctx, async (ctx) => {
        const active = await ctx.store.users.recordLogin(user, ctx.now(), changes)
        return active && startLogin(ctx, client, active, login)
      })
    const begun = rehashed === null ? await start({}) : await keepingOldHash(ctx, start, rehashed)
    if (begun) return finishLogin(ctx, begun)
  }
  throw new InvalidCredentialsError()
}

/** Logs in and stores the new hash. If the column is too short for the new hash, the old hash stays. */
async function keepingOldHash(
  ctx: AuthContext,
  start: (changes: { hashedPassword?: string }) => Promise<BegunLogin | null>,
  hashedPassword: string,
): Promise<BegunLogin | null> {
  try {
    return await start({ hashedPassword })
  } catch (error) {
    // These errors do not come from the new hash: the store was busy, or rejected the login for another reason.
    if (error instanceof AppError && !(error instanceof ValidationError)) throw error
    const begun = await start({})
    warnOfLostRehash(ctx, error)
    return begun
  }
}

const warned = new WeakSet<Logger>()

/** Logs the warning once for each router, because the cause is the same for all accounts. The store's error message names the column. */
function warnOfLostRehash({ logger }: AuthContext, error: unknown): void {
  if (warned.has(logger)) return
  warned.add(logger)
  const reason = error instanceof Error && error.name === 'DriverError' ? error.message : 'The database refused the new hash'
  logger.warn(
    { error: describeError(error) },
    `doorward: a new password hash could not be stored, so the old hash stays, and logins still work. ${reason}. ${seeTroubleshooting('a-new-hash-could-not-be-stored')}`,
  )
}

/** Hashes the password again. Returns null if hashing fails, because the login must not fail for this reason. */
async function rehash(ctx: AuthContext, password: string, turn: HashOptions): Promise<string | null> {
  try {
    return await hashPassword(ctx, password, turn)
  } catch (error) {
    ctx.logger.warn({ error: describeError(error) }, 'doorward: a password could not be hashed again; the old hash stays')
    return null
  }
}
