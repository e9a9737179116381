import { createRequire } from 'node:module'
import knex from 'knex'
import { expect, test } from 'vitest'

// A file of its own: nothing here may have been loaded by another test.

const { cache } = createRequire(import.meta.url)
const isLoaded = () => Object.keys(cache).some((path) => path.replaceAll('\\', '/').includes('/node_modules/@simplewebauthn/'))

test('a host without passkeysEnabled loads no byte of @simplewebauthn/server; one with it loads it at boot', async () => {
  const { createAuthRouter, createKnexStore } = await import('../../src')
  const database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
  const open = (settings: object) =>
    createAuthRouter({
      settings: { jwtSecret: 'a test secret of forty characters, or so', publicUrl: 'https://app.example.test', ...settings },
      store: createKnexStore({ knex: database }),
      environment: 'test',
      checkTables: false,
      logger: { info() {}, warn() {}, error() {} },
    })
  const without = open({})
  await expect(without.service.passkeyLoginOptions()).rejects.toThrow('passkeysEnabled')
  expect(isLoaded()).toBe(false)
  open({ passkeysEnabled: true, webauthnRpName: 'Example' })
  expect(isLoaded()).toBe(true)
  await database.destroy()
}, 60_000)
