/** The other processes of races.test.ts: the operations of a whole router each, on the same database. */
import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore } from '../../src'
import { AppError } from '../../src/core/errors'
import { serveTasks } from '../support/two-processes'

/** One call of the service, by its name and argument. */
export interface Call {
  verb: 'registerPasskey' | 'logInWithPasskey' | 'verifyMfa' | 'reauthenticate' | 'removePasskey'
  input: readonly unknown[]
}

/** All of them at once. */
export type Task = readonly Call[]

/** `ok`, or the code of the refusal. */
export type Outcome = string

export const origin = 'https://app.example.test'

export function serviceOn(knex: Knex): AuthService {
  return createAuthRouter({
    settings: {
      jwtSecret: 'the same secret in each process, long enough',
      publicUrl: origin,
      passkeysEnabled: true,
      webauthnRpName: 'Example',
      mfaEnabled: true,
      mfaIssuer: 'Example',
    },
    store: createKnexStore({ knex }),
    environment: 'test',
    throttle: { login: false, mfa: false },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  }).service
}

async function perform(service: AuthService, { verb, input }: Call): Promise<Outcome> {
  try {
    await (service[verb] as (...input: readonly unknown[]) => Promise<unknown>)(...input) // each verb with its own input
    return 'ok'
  } catch (error) {
    return error instanceof AppError ? error.code : String(error)
  }
}

if (process.send) {
  serveTasks<Task, Outcome[]>(
    async (db) => {
      const service = serviceOn(db)
      return (calls) => Promise.all(calls.map((call) => perform(service, call)))
    },
    { connections: 3 },
  )
}
