import { ConfigurationError } from '../core/errors'
import type { Locale } from '../http/locale'
import type { AuthStore, UserRecord } from '../store/auth-store'
import type { HostTransaction } from '../store/knex/knex-store'

/** Returns true if this account owes the task. Runs outside of our transactions, for at most 5 seconds. */
export type TaskCondition = (user: UserRecord) => boolean | Promise<boolean>

/** The form of a task of your own on our page. */
export interface TaskPage {
  readonly title: string
  /** Returns the fields of the form as HTML. `error` is the sentence of the last refusal, or null. Escape every value. */
  html(about: { email: string; locale: Locale; error: string | null }): string
}

export interface HostTaskOptions {
  /** `^[a-z][a-z0-9_]{0,39}$`. The route is `POST /tasks/<key>`, with `-` in place of `_`. */
  readonly key: string
  /** True: the login owes this task. It runs outside of a transaction and has 5 seconds. */
  readonly when: TaskCondition
  /**
   * Runs in the transaction of the step, which rolls everything back if this function throws. Throw an `AppError` to refuse the step.
   * `body` is the request's body without `task_token`. It is not validated. `trx` is null if the store is not from `createKnexStore`.
   */
  readonly complete: (
    user: UserRecord,
    body: Readonly<Record<string, unknown>>,
    store: AuthStore,
    unit: { readonly trx: HostTransaction | null },
  ) => void | Promise<void>
  /** Absent: the page has one button *Continue*. */
  readonly page?: TaskPage
}

interface SecondFactorTask {
  readonly kind: 'second_factor'
  readonly when: TaskCondition
}

interface NewPasswordTask {
  readonly kind: 'new_password'
}

export interface HostTask extends HostTaskOptions {
  readonly kind: 'host'
}

/** What a login can owe: made by `secondFactorTask`, `newPasswordTask` or `task`. */
export type LoginTask = SecondFactorTask | NewPasswordTask | HostTask

/** A login of these accounts must set up a second factor first, if the account has none. */
export function secondFactorTask({ when }: { when: TaskCondition }): LoginTask {
  return { kind: 'second_factor', when }
}

/** A login with an expired password (`service.expirePassword`) must set a new one first. */
export function newPasswordTask(): LoginTask {
  return { kind: 'new_password' }
}

/** A step of your own before the session begins, for example new terms of use. */
export function task(options: HostTaskOptions): LoginTask {
  return { ...options, kind: 'host' }
}

/** The configured tasks. `AuthContext.loginTasks` is null if no login can owe anything. */
export interface LoginTasks {
  readonly secondFactor: { readonly when: TaskCondition } | null
  readonly newPassword: boolean
  /** In the order of the option. */
  readonly hosts: readonly HostTask[]
  /** True: `device` exists. */
  readonly device: boolean
}

/** What the host said about one account, before the transaction of its login. */
export interface TaskAnswers {
  readonly user: UserRecord
  /** The keys of the tasks whose `when` returned true. An error: a `when` failed. */
  readonly owed: ReadonlySet<string> | Error
}

export const ownTasks = ['device', 'new_password', 'second_factor'] as const

/** Null: nothing is configured, so a login does nothing more than without this feature. */
export function loginTasksOf(tasks: readonly LoginTask[] | undefined, asksUnknownDevices: boolean): LoginTasks | null {
  if (tasks === undefined && !asksUnknownDevices) return null
  const secondFactor = (tasks ?? []).find((one) => one.kind === 'second_factor') ?? null
  const newPassword = (tasks ?? []).some((one) => one.kind === 'new_password')
  const hosts = (tasks ?? []).filter((one) => one.kind === 'host')
  return Object.freeze({ secondFactor, newPassword, hosts, device: asksUnknownDevices || newPassword || secondFactor !== null })
}

/** @throws ConfigurationError for a list that is not of our three functions, or that names a task twice */
export function checkLoginTasks(tasks: unknown): void {
  if (tasks === undefined) return
  if (!Array.isArray(tasks) || !tasks.every(isTask))
    throw wrong('must be a list of secondFactorTask({ when }), newPasswordTask() and task({ key, when, complete, page? })')
  const keys = tasks.map((one) => (one.kind === 'host' ? one.key : one.kind))
  for (const [index, key] of keys.entries()) {
    if (tasks[index]?.kind === 'host') checkKey(key)
    if (keys.indexOf(key) !== index) throw wrong(`names the task ${JSON.stringify(key)} twice`)
  }
  const { length } = JSON.stringify(tasks.flatMap((one) => (one.kind === 'host' ? [one.key] : [])))
  if (length > longestKeys)
    throw wrong(`has keys of ${length} characters as a JSON array; a login's cookie has room for ${longestKeys}, so shorten the keys`)
}

/** Browsers drop a cookie of more than 4096 bytes. The rest is for our tasks and the longest `return_to`, provider key and `sid`. */
const longestKeys = 300

function isTask(value: unknown): value is LoginTask {
  const { kind, when, complete, key, page } = Object(value) as Record<string, unknown>
  if (kind === 'new_password') return true
  if (typeof when !== 'function') return false
  if (kind === 'second_factor') return true
  return kind === 'host' && typeof complete === 'function' && typeof key === 'string' && (page === undefined || isPage(page))
}

function isPage(value: unknown): value is TaskPage {
  const { title, html } = Object(value) as Record<string, unknown>
  return typeof title === 'string' && typeof html === 'function'
}

function checkKey(key: string): void {
  const name = JSON.stringify(key.slice(0, 64))
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(key)) throw wrong(`has the key ${name}; a key must match ^[a-z][a-z0-9_]{0,39}$`)
  if (ownTasks.some((own) => own === key)) throw wrong(`has the key ${name}, which is a task of doorward; choose another key`)
}

function wrong(what: string): ConfigurationError {
  return new ConfigurationError(`Option loginTasks ${what}.`)
}
