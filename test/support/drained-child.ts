import knex from 'knex'
import { createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { fastHasher } from './fast-hasher'

/** A process that signs somebody up with a mailer that is down, drains, closes its database, and says how long it lived on. */
async function main(): Promise<void> {
  const database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
  await createAuthTables(database)
  const quiet = () => undefined
  const auth = createAuthRouter({
    settings: { jwtSecret: 'a test secret of forty characters, or so', publicUrl: 'http://localhost:3000', backendLinks: true },
    store: createKnexStore({ knex: database }),
    environment: 'test',
    passwordHasher: fastHasher(),
    logger: { info: quiet, warn: quiet, error: quiet },
    mailer: { send: async () => Promise.reject(new Error('no server')) },
  })
  await auth.service.signUp({ email: 'ana@example.test', password: 'a quiet harbour in winter' })
  await auth.drain()
  await database.destroy()
  const drainedAt = performance.now()
  process.once('exit', () => console.log(`drained; exit within a second: ${performance.now() - drainedAt < 1_000}`))
}

void main()
