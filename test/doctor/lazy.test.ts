import knex from 'knex'
import { expect, test, vi } from 'vitest'

// A file of its own: no other test may have loaded the checks.

test('the code of the doctor is loaded when auth.doctor() is called, and not before', async () => {
  let loads = 0
  vi.doMock('../../src/doctor/examine', (original) => {
    loads += 1
    return original()
  })
  const { createAuthRouter, createAuthTables, createKnexStore } = await import('../../src')
  const database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
  await createAuthTables(database)
  const auth = createAuthRouter({
    settings: { jwtSecret: 'kJ7-Vb2x_Zq81LpTnYw4RsCd5GfHm0aE3uIoX9vQ6tN', publicUrl: 'https://app.example.test', backendLinks: true },
    store: createKnexStore({ knex: database }),
    environment: 'test',
    logger: { info() {}, warn() {}, error() {} },
  })
  await auth.ready()
  expect(loads).toBe(0)

  expect(await auth.doctor()).toMatchObject({ ok: true })
  expect(loads).toBe(1)
  await database.destroy()
}, 60_000)
