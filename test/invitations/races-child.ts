/** The other processes of races.test.ts: a hundred browsers each, on the same database, by a whole router each. */

import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore } from '../../src'
import { AppError } from '../../src/core/errors'
import { serveTasks } from '../support/two-processes'

export type Task = { confirm: readonly string[] } | { redeem: readonly string[]; token: string }

/** How often each outcome came: `ok`, or the code of the refusal. */
export type Outcome = Record<string, number>

export function serviceOn(knex: Knex): AuthService {
  return createAuthRouter({
    settings: {
      jwtSecret: 'the same secret in each process, long enough',
      publicUrl: 'https://app.example.test',
      signupMode: 'invite',
      emailLogin: 'link',
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
  const calls =
    'confirm' in task
      ? task.confirm.map((token) => service.confirmEmailLogin({ token }))
      : task.redeem.map((userId) => service.invitations.redeem(userId, task.token))
  const outcomes: Outcome = {}
  for (const settled of await Promise.allSettled(calls)) {
    const name = settled.status === 'fulfilled' ? 'ok' : settled.reason instanceof AppError ? settled.reason.code : String(settled.reason)
    outcomes[name] = (outcomes[name] ?? 0) + 1
  }
  return outcomes
}

if (process.send) {
  serveTasks<Task, Outcome>(
    (knex) => {
      const service = serviceOn(knex)
      return (task) => perform(service, task)
    },
    { connections: 8 },
  )
}
