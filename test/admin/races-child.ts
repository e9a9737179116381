/** The other processes of races.test.ts: one administrator's act against another, on the same database. */
import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore } from '../../src'
import { serveTasks } from '../support/two-processes'

export interface Task {
  verb: 'demote' | 'deactivate' | 'resetMfa'
  by: string
  whom: string
}

function serviceOn(knex: Knex): AuthService {
  return createAuthRouter({
    settings: { jwtSecret: 'the same secret in each process, long enough', oauthRedirectBaseUrl: 'https://app.example.test' },
    store: createKnexStore({ knex }),
    environment: 'test',
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  }).service
}

if (process.send) {
  serveTasks<Task, 'done'>((db) => {
    const service = serviceOn(db)
    const verbs = {
      demote: ({ by, whom }: Task) => service.updateUser(whom, { isAdmin: false }, { by }),
      deactivate: ({ by, whom }: Task) => service.deactivate(whom, { by }),
      resetMfa: ({ by, whom }: Task) => service.resetMfa(whom, { by }),
    }
    return async (task) => {
      await verbs[task.verb](task)
      return 'done'
    }
  })
}
