import type supertest from 'supertest'
import { type AuthRouterOptions, createKnexStore, newPasswordTask, secondFactorTask, task } from '../../src'
import type { UserRecord } from '../../src/store/auth-store'
import { type LocalHost, type LocalOptions, newAddress, onLocal, password, post } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { addUser } from '../social/accounts-at-hand'
import type { Browser } from '../support/app'
import type { Database } from '../support/databases'

/** Nothing but what the test asks for refuses. */
export const unhurried = { login: false, signup: false, mfa: false, links: false, routes: false } as const

/** Who accepted the terms, by id. */
export const accepted = new Set<string>()

/** A step of the host: new terms of use, for people whose name says so. */
export const terms = task({
  key: 'terms_of_use',
  when: (user) => user.name === 'asked' && !accepted.has(user.id),
  complete: (user, body) => {
    if (body['accept'] !== true) throw new (class extends Error {})('not accepted')
    accepted.add(user.id)
  },
})

export const everyTask: NonNullable<AuthRouterOptions['loginTasks']> = [
  terms,
  newPasswordTask(),
  secondFactorTask({ when: (user) => user.isAdmin }),
]

/** `onLocal` with every task and the second factor. */
export function onTasks(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: ({ settings, options, ...rest }: LocalOptions = {}): Promise<LocalHost> =>
      start({
        ...rest,
        settings: { ...mfaSettings, ...settings },
        options: { loginTasks: everyTask, throttle: unhurried, ...options },
      }),
  }
}

export interface Person {
  email: string
  userId: string
}

/** Nobody signed in to this account so far. */
export async function person(host: LocalHost, changes: Partial<UserRecord> = {}): Promise<Person> {
  const hashedPassword = await host.hasher.hash(password)
  const { email, id } = await addUser(host.knex, { email: newAddress(), hashedPassword, emailVerifiedAt: new Date(0), ...changes })
  return { email, userId: id }
}

export async function change(host: LocalHost, { userId }: Pick<Person, 'userId'>, changes: Partial<UserRecord>): Promise<void> {
  await createKnexStore({ knex: host.knex }).users.update(userId, changes)
}

export const expired = { passwordExpiredAt: new Date(1_000) }

export interface Owing {
  user_id: string
  tasks_required: string[]
  task_token: string
}

/** The first answer of a login by password that owes something. */
export async function owing(host: LocalHost, { email }: Pick<Person, 'email'>, browser?: Browser): Promise<Owing> {
  const response = await (browser
    ? browser.post(`${host.prefix}/login`).send({ email, password })
    : post(host, '/login', { email, password }))
  if (response.status !== 200 || !response.body.task_token) throw new Error(`login answered ${response.status}: ${response.text}`)
  return response.body
}

export async function codeFor(host: LocalHost, { email }: Pick<Person, 'email'>): Promise<string> {
  return String((await host.mails.next({ kind: 'device_code', to: email })).code)
}

/** The answer to the mailed code. */
export async function throughDevice(host: LocalHost, who: Person, { task_token }: Pick<Owing, 'task_token'>): Promise<supertest.Response> {
  return post(host, '/tasks/device', { task_token, code: await codeFor(host, who) })
}

/** Begins and confirms the factor. */
export async function throughFactor(host: LocalHost, task_token: string): Promise<supertest.Response> {
  const { body } = await post(host, '/tasks/second-factor/enroll', { task_token })
  return post(host, '/tasks/second-factor/confirm', { task_token, code: authenticator(body.secret, host.clock).code() })
}

export const outcome = ({ status, body }: supertest.Response): unknown[] => [status, body.code]
export const over = [401, 'TASK_TOKEN_INVALID']
