/** The other processes of races.test.ts: codes and links on the same database, by a whole router each. */

import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore } from '../../src'
import { AppError } from '../../src/core/errors'
import { mailbox } from '../../src/testing/mailbox'
import { linkTemplates } from '../support/mailbox'
import { serveTasks } from '../support/two-processes'

type Proof = { token: string } | { code: string; requestToken: string }

/** Resets with each of the proofs at once. */
export type Task = { reset: readonly Proof[] }

/** What each call answered, or the code of its refusal. */
export type Outcome = readonly string[]

export function routerOn(knex: Knex) {
  const mails = mailbox()
  const { service }: { service: AuthService } = createAuthRouter({
    settings: {
      jwtSecret: 'the same secret in each process, long enough',
      publicUrl: 'https://app.example.test',
      mailedCodes: 'both',
      ...linkTemplates,
    },
    store: createKnexStore({ knex }),
    mailer: mails,
    environment: 'test',
    throttle: { login: false, links: false, mail: false, codes: false },
    logger: { info() {}, warn() {}, error: console.error },
  })
  return { service, mails }
}

async function reset(service: AuthService, proof: Proof): Promise<string> {
  try {
    await service.resetPassword({ ...proof, newPassword: 'nine green bicycles uphill' })
    return 'ok'
  } catch (error) {
    if (error instanceof AppError) return error.code
    throw error
  }
}

if (process.send) {
  serveTasks<Task, Outcome>((knex) => {
    const { service } = routerOn(knex)
    return (task) => Promise.all(task.reset.map((proof) => reset(service, proof)))
  })
}
