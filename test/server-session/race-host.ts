import type { Knex } from 'knex'
import { type AuthRouter, createAuthRouter, createKnexStore } from '../../src'
import { fastHasher } from '../support/fast-hasher'

/** An hour ahead, where a session of now is due to be moved on. */
export const ahead = () => new Date(Date.now() + 3_600_000)

export function routerOn(knex: Knex, now = () => new Date()): AuthRouter {
  return createAuthRouter({
    settings: { jwtSecret: 'the same secret in each process, long enough', oauthRedirectBaseUrl: 'https://app.example.test' },
    store: createKnexStore({ knex }),
    environment: 'test',
    passwordHasher: fastHasher(),
    throttle: { routes: false, login: false, links: false, mail: false },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
    now,
  })
}
