import { announceChange } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { ConfigurationError, ConflictError, EmailLoginInvalidError, TaskTokenInvalidError } from '../core/errors'
import type { Locale } from '../http/locale'
import { checkPassword, passwordRefusal } from '../passwords/check-password'
import { hashPassword, newPasswordChanges, verifyPassword } from '../passwords/verify-password'
import { forgetWrongCodes } from '../second-factor/code-limits'
import { confirmInLogin } from '../second-factor/confirm'
import { type Enrolment, enrollTotp } from '../second-factor/enroll'
import { findKnownDevice, type PresentedDevice } from '../sessions/devices/device-cookie'
import { endOtherSessions } from '../sessions/log-out'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { type BegunLogin, finishLogin, startLogin } from '../sessions/start-login'
import type { UserRecord } from '../store/auth-store'
import { transactionOf } from '../store/knex/knex-store'
import { countDeviceCode, issueDeviceCode, postDeviceCode, tryDeviceCode, useDeviceCode } from './device-code'
import type { HostTask } from './login-task'
import { consumeTaskToken, issuingTime, readTaskToken, requireTaskLogin, signTaskToken, type TaskLogin } from './task-token'

export interface TaskStep {
  /** Of the login's last answer. */
  taskToken: string
  /** Language of mails. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/** The client of a step gets the next answer: the remaining tasks, or the session. */
export interface StepClient {
  readonly client: LoginClient
  /** Of the request. Without one, a device that no earlier answer found is unknown. */
  readonly presented?: PresentedDevice
}

/** @throws EmailLoginInvalidError (a wrong, used or old code; each try counts); the errors of `openLogin` and `finishLogin` */
export async function confirmDevice(
  ctx: AuthContext,
  { taskToken, code }: TaskStep & { code: string },
  asking: StepClient,
): Promise<AnyLoginResult> {
  const { login } = await openLogin(ctx, taskToken, 'device')
  const { codeId } = login.tasks
  await tryDeviceCode(ctx, codeId, code)
  const begun = await transaction(ctx, async (ctx) => {
    const user = await holdLogin(ctx, login)
    if (!(await useDeviceCode(ctx, codeId))) throw new EmailLoginInvalidError()
    return advance(ctx, asking, user, withMethod(login, 'email'), 'device')
  })
  return finish(ctx, login, 'device', begun)
}

/** The old token and the old code end. @throws TooManyRequestsError (`throttle.mail.deviceCodes`); the errors of `openLogin` */
export async function resendDeviceCode(ctx: AuthContext, { taskToken }: TaskStep, { client }: StepClient): Promise<{ taskToken: string }> {
  const { login, user: seen } = await openLogin(ctx, taskToken, 'device')
  const counted = await countDeviceCode(ctx, seen)
  try {
    const resent = await transaction(ctx, async (ctx) => {
      const user = await holdLogin(ctx, login)
      await consumeTaskToken(ctx, login)
      await useDeviceCode(ctx, login.tasks.codeId)
      const code = await issueDeviceCode(ctx, user, client)
      const tasks = { ...login.tasks, codeId: code.id }
      return { code, taskToken: signTaskToken(ctx, user, { ...login, tasks, issuedAt: await issuingTime(ctx, user.id) }) }
    })
    postDeviceCode(ctx, resent.code)
    return { taskToken: resent.taskToken }
  } catch (error) {
    await counted.release()
    throw error
  }
}

/**
 * Replaces an expired password, and ends every session and mailed reset link of the account.
 * @throws ValidationError (the policy, or the expired password again); TooManyRequestsError after ten changes in a day; the errors of
 * `openLogin` and `finishLogin`
 */
export async function setNewPassword(
  ctx: AuthContext,
  { taskToken, newPassword, locale }: TaskStep & { newPassword: string },
  asking: StepClient,
): Promise<AnyLoginResult> {
  const { login, user: seen } = await openLogin(ctx, taskToken, 'new_password')
  const { userId } = login
  await checkPassword(ctx, newPassword, seen)
  if ((await verifyPassword(ctx, seen.hashedPassword, newPassword)).matches) throw passwordRefusal({ rule: 'unchanged' })
  const hashedPassword = await hashPassword(ctx, newPassword)
  const notice = { topic: 'password_changed', locale: locale ?? asking.client.locale } as const
  const begun = await announceChange(ctx, userId, notice, (leaveUndoPoint) =>
    transaction(ctx, async (ctx) => {
      const user = await holdLogin(ctx, login)
      await leaveUndoPoint(ctx, { user })
      const now = ctx.now()
      const changes = { ...newPasswordChanges(ctx, hashedPassword, now), updatedAt: now }
      await ctx.store.users.update(userId, changes)
      ctx.events.emit('password.changed', { userId, by: 'change' })
      await ctx.store.userTokens.consumeAllForUser(userId, now, 'PASSWORD_RESET')
      await endOtherSessions(ctx, userId)
      return advance(ctx, asking, { ...user, ...changes }, { ...login, isReset: true }, 'new_password')
    }),
  )
  await forgetWrongCodes(ctx, userId)
  return finish(ctx, login, 'new_password', begun)
}

/** Only this login can confirm it. The token stays valid. @throws the errors of `openLogin` */
export async function beginSecondFactor(ctx: AuthContext, { taskToken, locale }: TaskStep): Promise<Enrolment> {
  const { login } = await openLogin(ctx, taskToken, 'second_factor')
  return enrollTotp(ctx, login.userId, {
    locale,
    owner: login.tasks.id,
    check: async (ctx, user) => void (await requireTaskLogin(ctx, login, user)),
  })
}

/**
 * The session then has `otp`, and is not fresh, because a new factor confirms nothing yet.
 * @throws MfaNotEnrolledError (this login began no enrolment, or a later one replaced it), MfaCodeInvalidError, MfaThrottledError; the errors
 * of `openLogin` and `finishLogin`
 */
export async function finishSecondFactor(
  ctx: AuthContext,
  { taskToken, code, locale }: TaskStep & { code: string },
  asking: StepClient,
): Promise<AnyLoginResult> {
  const { login } = await openLogin(ctx, taskToken, 'second_factor')
  const begun = await confirmInLogin(
    ctx,
    { userId: login.userId, code, locale: locale ?? asking.client.locale, owner: login.tasks.id },
    { check: (ctx, user) => requireTaskLogin(ctx, login, user) },
    (ctx, user) => advance(ctx, asking, user, { ...withMethod(login, 'otp'), isYoung: true, isReset: true }, 'second_factor'),
  )
  return finish(ctx, login, 'second_factor', begun)
}

/**
 * Runs the host's `complete` in the transaction that uses the token.
 * @throws what `complete` throws, after everything was rolled back; the errors of `openLogin` and `finishLogin`
 */
export async function completeTask(
  ctx: AuthContext,
  key: string,
  { taskToken, body }: TaskStep & { body: Readonly<Record<string, unknown>> },
  asking: StepClient,
): Promise<AnyLoginResult> {
  const { complete } = hostTaskOf(ctx, key)
  const { login } = await openLogin(ctx, taskToken, key)
  const begun = await transaction(ctx, async (ctx) => {
    await complete(await holdLogin(ctx, login), body, ctx.store, { trx: transactionOf(ctx.store) })
    const user = await ctx.store.users.lock(login.userId) // as `complete` left it
    if (!user?.isActive) throw new TaskTokenInvalidError()
    return advance(ctx, asking, user, login, key)
  })
  return finish(ctx, login, key, begun)
}

function hostTaskOf({ loginTasks }: AuthContext, key: string): HostTask {
  const found = loginTasks?.hosts.find((one) => one.key === key)
  if (found) return found
  throw new ConfigurationError(`Option loginTasks has no task with the key ${JSON.stringify(String(key).slice(0, 64))}.`)
}

/**
 * Before the step's work. Nothing is counted.
 * @throws TaskTokenInvalidError; ConflictError if the login owes another task first
 */
export async function openLogin(ctx: AuthContext, taskToken: string, task: string): Promise<{ login: TaskLogin; user: UserRecord }> {
  const login = readTaskToken(ctx, taskToken)
  const user = await requireTaskLogin(ctx, login, await ctx.store.users.find(login.userId))
  if (login.owed[0] !== task) throw new ConflictError()
  return { login, user }
}

async function holdLogin(ctx: AuthContext, login: TaskLogin): Promise<UserRecord> {
  return requireTaskLogin(ctx, login, await ctx.store.users.lock(login.userId))
}

function withMethod(login: TaskLogin, method: AuthMethod): TaskLogin {
  return { ...login, amr: [...new Set<AuthMethod>([...login.amr, method])] }
}

/** In the transaction of the step, with the row as the step left it. */
async function advance(
  ctx: AuthContext,
  { client, presented }: StepClient,
  user: UserRecord,
  login: TaskLogin,
  task: string,
): Promise<BegunLogin> {
  await consumeTaskToken(ctx, login)
  const tasks = { ...login.tasks, done: [...login.tasks.done, task], codeId: null }
  const isKnownDevice = async (ctx: AuthContext) => presented !== undefined && (await findKnownDevice(ctx, user.email, presented)) !== null
  return startLogin(ctx, client, user, { ...login, tasks, isKnownDevice })
}

async function finish(ctx: AuthContext, login: TaskLogin, task: string, begun: BegunLogin): Promise<AnyLoginResult> {
  const { userId, provider, destination = null, tasks } = login
  ctx.events.emit('task.done', { userId, task })
  const result = await finishLogin(ctx, begun, provider === null ? {} : { provider })
  if (result.kind !== 'session') return result
  if ([...tasks.done, task].includes('device')) ctx.events.emit('login.new_device', { userId })
  return destination && 'returnTo' in destination ? { ...result, returnTo: destination.returnTo } : result
}
