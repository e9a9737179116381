/** The other processes of races.test.ts: the operations of a whole router each, on the same database. */
import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { type AuthRouter, type AuthService, createAuthRouter, createKnexStore, type PasswordHasher } from '../../src'
import { AppError } from '../../src/core/errors'
import { serveTasks } from '../support/two-processes'

/** With a grace window, or without. */
export type Mode = 'strict' | 'graced'

/** One call of the service, by its name and arguments. */
export interface Call {
  verb: 'refresh' | 'logOut' | 'resetPassword' | 'changePassword' | 'deactivate' | 'confirmTotp'
  given: readonly unknown[]
}

export type Task =
  /** All of them at once. */
  | { kind: 'calls'; mode: Mode; calls: readonly Call[] }
  /** Refreshes, and is killed (SIGKILL) once the rotation is committed, before anybody hears of it. */
  | { kind: 'die after rotation'; mode: Mode; token: string }
  /** Refreshes with a spent token, and is killed as soon as the reuse was noticed. */
  | { kind: 'die after reuse'; token: string }

/** The refresh token a call answered, '' for one without, or the code of its refusal. */
export type Outcome = { token: string } | { code: string }

/** What both processes and the test share, so that one reads the other's tokens. */
const settings = {
  jwtSecret: 'the same secret in each process, long enough',
  oauthRedirectBaseUrl: 'https://app.example.test',
  mfaEnabled: true,
  mfaIssuer: 'Example',
}

export const plainHasher: PasswordHasher = {
  hash: async (password) => `test$${createHash('sha256').update(password).digest('hex')}`,
  verify: async (hash, password) => hash === (await plainHasher.hash(password)),
  needsRehash: () => false,
}

export function routerOn(knex: Knex, mode: Mode, store = createKnexStore({ knex })): AuthRouter {
  return createAuthRouter({
    settings: { ...settings, refreshReuseGraceSeconds: mode === 'graced' ? 60 : 0 },
    store,
    environment: 'test',
    passwordHasher: plainHasher,
    throttle: { login: false, mfa: false },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
}

export async function outcomeOf(service: AuthService, { verb, given }: Call): Promise<Outcome> {
  try {
    const answer = await (service[verb] as (...given: readonly unknown[]) => Promise<unknown>)(...given) // each verb with its own arguments
    const { refreshToken = '' } = Object(answer) as { refreshToken?: string } // of those that end in a session
    return { token: refreshToken }
  } catch (error) {
    return { code: error instanceof AppError ? error.code : String(error) }
  }
}

function killedAfterRotation(knex: Knex, mode: Mode): AuthService {
  const store = createKnexStore({ knex })
  const rotate: typeof store.sessions.rotate = async (rotation) => {
    const rotated = await store.sessions.rotate(rotation)
    process.kill(process.pid, 'SIGKILL')
    return rotated
  }
  return routerOn(knex, mode, { ...store, sessions: { ...store.sessions, rotate } }).service
}

if (process.send) {
  serveTasks<Task, Outcome[]>(
    async (db) => {
      const routers = { strict: routerOn(db, 'strict'), graced: routerOn(db, 'graced') }
      return async (task) => {
        if (task.kind === 'calls') return Promise.all(task.calls.map((call) => outcomeOf(routers[task.mode].service, call)))
        if (task.kind === 'die after rotation') await killedAfterRotation(db, task.mode).refresh(task.token)
        else {
          routers.strict.events.on('refresh.reused', () => process.kill(process.pid, 'SIGKILL'))
          await routers.strict.service.refresh(task.token)
        }
        return []
      }
    },
    { connections: 3 },
  )
}
