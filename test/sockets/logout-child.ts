/** The other process of two-processes.test.ts: a router on the same database, where people log out. */
import { createAuthRouter, createKnexStore } from '../../src'
import { baseUrl, testSecret } from '../support/app'
import { testClock } from '../support/clock'
import { serveTasks } from '../support/two-processes'

export type Task = { refreshToken: string }
export type Answer = { at: number }

serveTasks<Task, Answer>((knex) => {
  const auth = createAuthRouter({
    settings: { jwtSecret: testSecret, publicUrl: baseUrl },
    store: createKnexStore({ knex }),
    environment: 'test',
    now: testClock().now,
    logger: { info() {}, warn() {}, error() {} },
  })
  return async ({ refreshToken }) => {
    await auth.service.logOut(refreshToken)
    return { at: performance.timeOrigin + performance.now() }
  }
})
