/** The other processes of races.test.ts: login by email on the same database, by a whole router each. */

import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore } from '../../src'
import { AppError } from '../../src/core/errors'
import { serveTasks } from '../support/two-processes'

export type Task = { confirm: { token: string } | { code: string; requestToken: string } } | { deactivate: string }

/** What the call answered, or the code of its refusal. */
export type Outcome = 'ok' | string

export function serviceOn(knex: Knex): AuthService {
  return createAuthRouter({
    settings: {
      jwtSecret: 'the same secret in each process, long enough',
      publicUrl: 'https://app.example.test',
      emailLogin: 'both',
      emailLoginSignup: true,
      emailLoginUrlTemplate: 'https://app.example.test/in/{token}',
    },
    store: createKnexStore({ knex }),
    environment: 'test',
    throttle: { login: false, links: false, mail: false },
    logger: { info() {}, warn() {}, error: console.error },
  }).service
}

async function perform(service: AuthService, task: Task): Promise<Outcome> {
  try {
    if ('confirm' in task) await service.confirmEmailLogin(task.confirm)
    else await service.deactivate(task.deactivate)
    return 'ok'
  } catch (error) {
    if (error instanceof AppError) return error.code
    throw error
  }
}

if (process.send) {
  serveTasks<Task, Outcome>((knex) => {
    const service = serviceOn(knex)
    return (task) => perform(service, task)
  })
}
