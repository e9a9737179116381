import { type AuthContext, transaction } from '../context'
import { type AuthMethod, isAuthMethod, isSecondFactor } from '../core/amr'
import { clientKey } from '../core/client-key'
import { AccountInactiveError, NotFoundError } from '../core/errors'
import { askTasks } from '../login-tasks/tasks-owed'
import type { UserRecord } from '../store/auth-store'
import { isRefusedByState, mayProve } from './account-state'
import { announceFailedLogin, announcingRefusal } from './devices/login-limits'
import type { AnyLoginResult, Login, LoginClient } from './login'
import { finishLogin, startLogin } from './start-login'

export interface OpenSessionOptions {
  /** How you authenticated the person. `otp` and `passkey` only with `skipSecondFactor`. Default `['ext']`. */
  amr?: readonly AuthMethod[]
  /** The name of your identity provider, 1 to 64 characters. The person sees it in the list of sessions. */
  provider?: string
  /** False: the person did not authenticate just now, so the session is not fresh. Default true. */
  fresh?: boolean
  /** False: the session's cookies end when the browser closes. Default true. */
  remember?: boolean
  /** True: the account's second factor is not asked. `amr` stays as it is, so `requireMfa` still refuses the session. Default false. */
  skipSecondFactor?: boolean
}

/**
 * Opens a session for a person whom the host authenticated, like every login: no limits of logins, and no cross-site rule.
 * @throws TypeError for wrong options; NotFoundError; AccountInactiveError; the errors of `startLogin` and `finishLogin`
 */
export async function openSession(
  ctx: AuthContext,
  userId: string,
  options: OpenSessionOptions,
  client: LoginClient,
): Promise<AnyLoginResult> {
  const login = loginOf(options)
  const seen = await ctx.store.users.find(userId)
  if (!seen) throw new NotFoundError()
  if (!mayProve(seen)) throw refuseInactive(ctx, seen, client)
  const begun = await transaction(await askTasks(ctx, seen, login, client.browser), async (ctx) => {
    const user = await ctx.store.users.lock(userId)
    if (!user || !mayProve(user)) return null // changed meanwhile
    if (isRefusedByState(user)) return startLogin(ctx, client, user, login)
    const changes = { lastLoginAt: ctx.now() }
    await ctx.store.users.update(userId, changes)
    return startLogin(ctx, client, { ...user, ...changes }, login)
  })
  if (begun === null) throw refuseInactive(ctx, seen, client)
  return announcingRefusal(ctx, client, seen, () => finishLogin(ctx, begun, login.provider === null ? {} : { provider: login.provider }))
}

function refuseInactive(ctx: AuthContext, { id, email }: UserRecord, { origin }: LoginClient): AccountInactiveError {
  announceFailedLogin(ctx, { userId: id, email, client: clientKey(origin.ip) }, { reason: AccountInactiveError.code })
  return new AccountInactiveError()
}

const known: readonly string[] = ['amr', 'provider', 'fresh', 'remember', 'skipSecondFactor'] satisfies (keyof OpenSessionOptions)[]

/** @throws TypeError, because a typing error must not open a stronger session */
function loginOf(options: OpenSessionOptions): Login {
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown !== undefined) throw new TypeError(`openSession(): there is no option ${unknown}. The options are ${known.join(', ')}.`)
  const { amr = ['ext'], provider = null, fresh = true, remember = true, skipSecondFactor = false } = options
  for (const [name, value] of Object.entries({ fresh, remember, skipSecondFactor }))
    if (typeof value !== 'boolean') throw new TypeError(`openSession(): ${name} must be true or false.`)
  if (!Array.isArray(amr) || amr.length === 0 || !amr.every(isAuthMethod))
    throw new TypeError("openSession(): amr must be a list of 'pwd', 'ext', 'email', 'otp' and 'passkey'.")
  if (!skipSecondFactor && amr.some(isSecondFactor))
    throw new TypeError(
      "openSession(): amr names 'otp' or 'passkey' only with skipSecondFactor: true, because you then checked that factor.",
    )
  if (provider !== null && (typeof provider !== 'string' || provider === '' || [...provider].length > 64))
    throw new TypeError('openSession(): provider must be a text of 1 to 64 characters.')
  return {
    amr: [...new Set<AuthMethod>(amr)],
    provider,
    isYoung: !fresh,
    isPersistent: remember,
    isFromHost: true,
    ...(skipSecondFactor && { skipsSecondFactor: true }),
  }
}
