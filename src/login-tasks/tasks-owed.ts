import type { AuthContext } from '../context'
import { isSecondFactor } from '../core/amr'
import { InvalidCredentialsError, ServiceUnavailableError } from '../core/errors'
import { describeError, withOwnMessage } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import { withTimeout } from '../core/with-timeout'
import type { Login, LoginBrowser } from '../sessions/login'
import type { UserRecord } from '../store/auth-store'
import { mayBeTrusted } from '../trusted-devices/trust-cookie'
import type { LoginTasks, TaskAnswers, TaskCondition } from './login-task'

type AskedLogin = Pick<Login, 'amr' | 'tasks' | 'skipsSecondFactor'>

/**
 * Asks the host before the transaction, so that the login needs no second one. Call it only with a credential that was right. Asks nothing
 * for a login that must show the second factor first. If the host fails, only `tasksOwed` throws: a login without a session needs no answer.
 */
export async function askTasks(ctx: AuthContext, user: UserRecord, login: AskedLogin, browser?: LoginBrowser): Promise<AuthContext> {
  if (ctx.loginTasks === null || questionsOf(ctx.loginTasks, user, login).length === 0) return ctx
  const { amr, skipsSecondFactor } = login
  const owesFactor = hasActiveFactor(ctx, user) && !skipsSecondFactor && !amr.some(isSecondFactor) && !mayBeTrusted(ctx, browser, user)
  const isAskedLater = owesFactor || (!login.tasks && mayBeRefused(ctx.loginTasks, user, login))
  return isAskedLater ? ctx : { ...ctx, taskAnswers: await answersOf(ctx, ctx.loginTasks, user, login) }
}

/** From an unknown device, this is the refusal of a wrong password. A host that takes its time would show that the password is right. */
function mayBeRefused(tasks: LoginTasks, user: UserRecord, login: AskedLogin): boolean {
  return owesPassword(tasks, user, login) && login.amr.length === 1 && user.emailVerifiedAt === null
}

function owesPassword({ newPassword }: LoginTasks, { passwordExpiredAt }: UserRecord, { amr }: AskedLogin): boolean {
  return newPassword && amr[0] === 'pwd' && Boolean(passwordExpiredAt)
}

async function answersOf(ctx: AuthContext, tasks: LoginTasks, user: UserRecord, login: AskedLogin): Promise<TaskAnswers> {
  const owed = new Set<string>()
  try {
    for (const [key, when] of questionsOf(tasks, user, login)) if (await isOwed(ctx, key, when, user)) owed.add(key)
    return { user, owed }
  } catch (error) {
    if (error instanceof TasksUnavailableError) return { user, owed: error }
    throw error
  }
}

/** The tasks that only the host can decide. */
function questionsOf({ secondFactor, hosts }: LoginTasks, user: UserRecord, { amr, tasks }: AskedLogin): [string, TaskCondition][] {
  const mayOweFactor = secondFactor !== null && user.emailVerifiedAt !== null && user.totpEnabledAt === null && !amr.some(isSecondFactor)
  const asked: [string, TaskCondition][] = [
    ...(mayOweFactor ? [['second_factor', secondFactor.when] as [string, TaskCondition]] : []),
    ...hosts.map(({ key, when }): [string, TaskCondition] => [key, when]),
  ]
  return asked.filter(([key]) => !tasks?.done.includes(key))
}

const deadlineMs = 5_000

/** The log has the reason. The response says only that the client may try again. */
class TasksUnavailableError extends ServiceUnavailableError {
  override readonly isLogged = true
}

async function isOwed({ logger }: AuthContext, task: string, when: TaskCondition, user: UserRecord): Promise<boolean> {
  try {
    // Async, so that a synchronous throw becomes a rejection.
    return (
      (await withTimeout((async () => when(user))(), deadlineMs, () =>
        withOwnMessage(new Error(`The function when of the task ${task} took too long.`)),
      )) === true
    )
  } catch (error) {
    logger.error(
      { task, error: describeError(error) },
      `doorward: when() of a login task failed, so no session began. ${seeTroubleshooting('a-login-task-fails')}`,
    )
    throw new TasksUnavailableError({ cause: error })
  }
}

export interface Owed {
  readonly tasks: readonly string[]
  readonly isDeviceSettled: boolean
}

/**
 * In the transaction that locked the active user. Null: the host must be asked first, after the commit.
 * @throws ServiceUnavailableError if a `when` threw or was late
 * @throws InvalidCredentialsError: an expired password from an unknown device, and nobody has verified the mailbox for a code
 */
export async function tasksOwed(ctx: AuthContext, tasks: LoginTasks, user: UserRecord, login: Login): Promise<Owed | null> {
  if (mayBeRefused(tasks, user, login) && (await deviceOwed(ctx, user, login, true)) === 'owed') throw new InvalidCredentialsError()
  const questions = questionsOf(tasks, user, login)
  const answers = questions.length === 0 ? noAnswers : answersFor(ctx, user)
  if (answers === null) return null
  const later = [
    ...(owesPassword(tasks, user, login) ? ['new_password'] : []),
    ...questions.flatMap(([key]) => (answers.has(key) ? [key] : [])),
  ]
  const device = await deviceOwed(ctx, user, login, later.includes('new_password') || later.includes('second_factor'))
  return { tasks: device === 'owed' ? ['device', ...later] : later, isDeviceSettled: device === 'settled' }
}

/** Without `mfaEnabled`, no login asks for the factor that a row still has. */
function hasActiveFactor({ settings }: AuthContext, { totpEnabledAt }: UserRecord): boolean {
  return settings.mfaEnabled && totpEnabledAt !== null
}

const noAnswers: ReadonlySet<string> = new Set()

/** Null if the account changed since the host was asked. @throws ServiceUnavailableError */
function answersFor({ taskAnswers }: AuthContext, user: UserRecord): ReadonlySet<string> | null {
  if (!taskAnswers || !isSame(taskAnswers.user, user)) return null
  if (taskAnswers.owed instanceof Error) throw taskAnswers.owed
  return taskAnswers.owed
}

/** But for what each login writes. */
function isSame(one: UserRecord, other: UserRecord): boolean {
  const of = (user: UserRecord) =>
    JSON.stringify(Object.entries({ ...user, lastLoginAt: 0, updatedAt: 0, hashedPassword: 0, totpLastStep: 0 }).sort())
  return one.id === other.id && of(one) === of(other)
}

/** `settled`: the device is known, or the login has no request, so no later step owes `device`. `open`: nobody asked. */
async function deviceOwed(ctx: AuthContext, user: UserRecord, login: Login, owesCredential: boolean): Promise<'owed' | 'settled' | 'open'> {
  const { amr, tasks } = login
  if (tasks ? tasks.isDeviceSettled || tasks.done.includes('device') : !login.isKnownDevice) return 'settled'
  if (amr.length !== 1 || amr[0] !== 'pwd') return 'open'
  const isUnknownAsked = ctx.settings.unknownDevice === 'code' && !hasActiveFactor(ctx, user) && user.emailVerifiedAt !== null
  if (!owesCredential && !isUnknownAsked) return 'open'
  return (await login.isKnownDevice?.(ctx)) ? 'settled' : 'owed'
}
