/** The other processes of races.test.ts: the operations of a whole router each, on the same database. */
import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createKnexStore, knexCounters, type PasswordHasher } from '../../src'
import { AppError } from '../../src/core/errors'
import { serveTasks } from '../support/two-processes'

/** One call of the service, by its name and argument. */
export interface Call {
  verb: 'verifyMfa' | 'changePasswordWithMfa' | 'disableTotp' | 'enrollTotp' | 'confirmTotp' | 'regenerateRecoveryCodes'
  input: Parameters<AuthService[Call['verb']]>[0]
  /** With the budget of wrong codes, counted in the database. */
  counted?: boolean
}

/** All of them at once. */
export type Task = readonly Call[]

/** `ok`: what the call answered; else the code of its refusal. */
export type Outcome = { ok: unknown } | { code: string }

/** What both processes and the test share, so that one reads the other's tokens. */
export const raceSettings = {
  jwtSecret: 'the same secret in each process, long enough',
  oauthRedirectBaseUrl: 'https://app.example.test',
  mfaEnabled: true,
  mfaIssuer: 'Example',
  mfaRecoveryCodesCount: 8,
}

export const plainHasher: PasswordHasher = {
  hash: async (password) => `test$${createHash('sha256').update(password).digest('hex')}`,
  verify: async (hash, password) => hash === (await plainHasher.hash(password)),
  needsRehash: () => false,
}

export function serviceOn(knex: Knex, { counted = false } = {}): AuthService {
  return createAuthRouter({
    settings: raceSettings,
    store: createKnexStore({ knex }),
    environment: 'test',
    passwordHasher: plainHasher,
    throttle: counted ? { counters: knexCounters(knex), login: false } : { mfa: false, login: false },
    logger: { info() {}, warn() {}, error: tell },
  }).service
}

/** The database was too slow to count: this process did, as it should, and the other knows nothing of it. */
let isCountedHere = false
export const countedHere = 'COUNTED_HERE'

function tell(fields: object, message: string): void {
  if (message.includes('this process counts by itself')) isCountedHere = true
  console.error(message, fields)
}

async function perform({ plain, counting }: Record<'plain' | 'counting', AuthService>, { verb, input, counted }: Call): Promise<Outcome> {
  const service = counted ? counting : plain
  try {
    return { ok: await (service[verb] as (input: Call['input']) => Promise<unknown>)(input) } // each verb with its own input
  } catch (error) {
    return { code: error instanceof AppError ? error.code : String(error) }
  }
}

if (process.send) {
  serveTasks<Task, Outcome[]>(
    async (db) => {
      const services = { plain: serviceOn(db), counting: serviceOn(db, { counted: true }) }
      return async (calls) => {
        isCountedHere = false
        const outcomes = await Promise.all(calls.map((call) => perform(services, call)))
        if (!isCountedHere) return outcomes
        services.counting = serviceOn(db, { counted: true }) // which has no store to be wary of
        return outcomes.map(() => ({ code: countedHere }))
      }
    },
    { connections: 3 },
  )
}
