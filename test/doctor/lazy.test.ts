import knex from 'knex'
import { expect, test, vi } from 'vitest'

// A file of its own: no other test may have loaded the checks.

test('the code of the doctor is loaded by auth.doctor(), that of the operations by the command, and not before', async () => {
  const loaded: string[] = []
  for (const file of [
    'router/findings/doctor/examine',
    'admin/operations/operations',
    'admin/operations/import-users',
    'store/knex/import-users',
  ])
    vi.doMock(`../../src/${file}`, (original) => {
      loaded.push(file)
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
  expect(loaded).toEqual([])

  expect(await auth.doctor()).toMatchObject({ ok: true })
  expect(loaded).toEqual(['router/findings/doctor/examine'])

  const { appFolder, doorward } = await import('../command/run-command')
  expect(loaded).toEqual(['router/findings/doctor/examine'])
  expect(await doorward('purge', { folder: appFolder(auth) })).toMatchObject({ exitCode: 0 })
  expect(loaded.sort()).toEqual([
    'admin/operations/import-users',
    'admin/operations/operations',
    'router/findings/doctor/examine',
    'store/knex/import-users',
  ])
  await database.destroy()
}, 60_000)
