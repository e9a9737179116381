import knexLibrary from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { testSecret } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { appFolder, doorward } from './run-command'

const settings = { jwtSecret: testSecret, publicUrl: 'https://app.example.test', backendLinks: true }

describe('what the command refuses is a sentence that says what to change', () => {
  let db: OpenDatabase
  let folder: string

  beforeAll(async () => {
    const [database] = await databases()
    if (!database) throw new Error('no database')
    db = await database.open({ memory: true })
    await createAuthTables(db.knex)
    folder = appFolder(
      createAuthRouter({
        settings,
        store: createKnexStore({ knex: db.knex }),
        environment: 'test',
        logger: logTap(),
        passwordPolicy: { minLength: 14, maxBytes: 64, requireComplexity: true },
      }),
    )
  })
  afterAll(() => db.close())

  test.each([
    ['users create ada@example.com --password-stdin', 'short', 'The password is too short: at least 14 characters.'],
    ['users create ada@example.com --password-stdin', 'x'.repeat(65), 'The password is too long: at most 64 bytes of UTF-8.'],
    [
      'users create ada@example.com --password-stdin',
      'only lower case letters',
      'The password has no character of these classes: upper, digit.',
    ],
    [
      'users create ada@example.com --password-stdin',
      'Ada@example.com 1',
      'The password is easy to guess: it is common, or contains the address or the name.',
    ],
    ['users create ada --password-stdin', 'A fine pass phrase 1', '`email` is not an email address.'],
    ['users list --limit 1000', '', '`limit` is out of range.'],
    ['users list --filter shoe_size=1', '', 'Unknown filter (filter: shoe_size).'],
    ['users list --cursor nonsense', '', '`cursor` has a value that is not valid.'],
  ])('%s', async (line, password, sentence) => {
    expect(await doorward(line, { folder, stdin: `${password}\n` })).toMatchObject({ exitCode: 1, out: '', err: `${sentence}\n` })
  })
})

describe.each([
  ['pg', { host: '127.0.0.1', port: 1, user: 'nobody', database: 'none' }],
  ['mysql2', { host: '127.0.0.1', port: 1, user: 'nobody', database: 'none' }],
])('with a database of %s that does not run', (client, connection) => {
  const knex = knexLibrary({ client, connection, log: { warn() {}, error() {} } })
  const auth = createAuthRouter({ settings, store: createKnexStore({ knex }), environment: 'test', logger: logTap() })
  const folder = appFolder(auth)
  afterAll(() => knex.destroy())

  test.each([
    'users list',
    'users show ada@example.com',
    'users create ada@example.com',
    'users export',
    'purge',
    'migrate status',
    'migrate up',
  ])('%s says that the database cannot be reached', async (line) => {
    const { exitCode, out, err } = await doorward(line, { folder })
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' })
    expect(err).toContain('The database cannot be reached. Start it, or correct the connection of your knex instance (ECONNREFUSED).')
    expect(JSON.parse((await doorward(`${line} --json`, { folder })).out).error.code).toBe('SERVICE_UNAVAILABLE')
  })
})
