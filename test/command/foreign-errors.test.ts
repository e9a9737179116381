import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthStore, ConfigurationError, createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { testSecret } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { appFolder, doorward, emptyFolder } from './run-command'

const canaries = /hash-canary|address-canary/

/** An error as knex makes it: its message holds the statement and its values. */
function sqlError(): Error {
  const message = "insert into `users` (`mail`, `hash`) values ('address-canary@example.com', 'hash-canary') - refused"
  return Object.assign(new Error(message), { code: 'SQLITE_CONSTRAINT', detail: 'hash-canary', details: { key: 'hash-canary' } })
}

const fail = () => Promise.reject(sqlError())

let db: OpenDatabase

beforeAll(async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  db = await database.open({ memory: true })
  await createAuthTables(db.knex)
})

afterAll(() => db.close())

/** The folder of an app whose store is an adapter of the host's, which fails. */
function folderWith(change: (store: AuthStore) => Partial<AuthStore>): string {
  const store = createKnexStore({ knex: db.knex })
  const auth = createAuthRouter({
    settings: { jwtSecret: testSecret, publicUrl: 'https://app.example.test', backendLinks: true },
    store: { ...store, ...change(store) },
    environment: 'test',
    logger: logTap(),
  })
  const folder = appFolder(auth)
  for (const count of [1, 30]) {
    const rows = Array.from({ length: count }, (_, number) => `some${number}@example.com`)
    writeFileSync(join(folder, `people${count}.csv`), `email\n${rows.join('\n')}\n`)
  }
  return folder
}

const usersThat = (verbs: Partial<AuthStore['users']>) => (store: AuthStore) => ({
  users: { ...store.users, ...verbs },
  transaction: ((work, options) =>
    store.transaction((inside) => work({ ...inside, users: { ...inside.users, ...verbs } }), options)) as AuthStore['transaction'],
})

const stores: Readonly<Record<string, (store: AuthStore) => Partial<AuthStore>>> = {
  'that fails at every account': usersThat({ insert: fail, find: fail, findByEmail: fail, list: fail }),
  'that refuses rows': usersThat({ insert: fail }),
  'that begins no transaction': () => ({ transaction: fail }),
}

describe.each(Object.entries(stores))('of an adapter %s', (_name, change) => {
  test.each([
    'users import people1.csv',
    'users import people30.csv',
    'users import people1.csv --dry-run',
    'users create one@example.com',
    'users show one@example.com',
    'users list',
    'users export',
  ])('%s prints at most the code of an error', async (line) => {
    const folder = folderWith(change)
    for (const json of ['', ' --json']) {
      const { exitCode, out, err } = await doorward(line + json, { folder })
      expect(out + err).not.toMatch(canaries)
      const whole = await doorward(`${line}${json} --verbose`, { folder })
      expect(whole.out).not.toMatch(canaries)
      expect(whole.exitCode).toBe(exitCode)
      if (/SQLITE_CONSTRAINT/.test(out + err)) expect(whole.err).toMatch(canaries)
    }
  })
})

test('the code of a foreign error is told, with how to see all of it', async () => {
  const folder = folderWith(usersThat({ list: fail }))

  expect(await doorward('users list', { folder })).toEqual({
    exitCode: 1,
    out: '',
    err: 'Failed with SQLITE_CONSTRAINT. --verbose shows the whole error, which may contain personal data.\n',
  })
  const { out, err } = await doorward('users list --json --verbose', { folder })
  expect(JSON.parse(out)).toMatchObject({ error: { code: 'FAILED', message: expect.stringContaining('SQLITE_CONSTRAINT') } })
  expect(err).toContain('address-canary@example.com')
})

test('a refused row names the code; with --verbose its whole error stands on standard error, by its line', async () => {
  const folder = folderWith(usersThat({ insert: fail }))

  const { out, err } = await doorward('users import people1.csv --json --verbose', { folder })
  expect(JSON.parse(out).refused).toEqual([{ line: 2, rule: 'database', message: expect.stringContaining('SQLITE_CONSTRAINT') }])
  expect(err).toMatch(/^line 2 {2}Error: insert into .*address-canary/)
  const stuck = await doorward('users import people30.csv', { folder })
  expect(stuck.err).toMatch(/^The database refuses every row\. .*SQLITE_CONSTRAINT/)
})

describe('of a module that throws', () => {
  test.each(['purge', 'purge --json', 'doctor', 'doctor --json', 'users import people.csv'])('%s prints the code alone', async (line) => {
    const folder = appFolder(() => {
      throw new Error('cannot boot', { cause: sqlError() })
    })
    const sql = appFolder(() => {
      throw sqlError()
    })
    writeFileSync(join(folder, 'people.csv'), 'email\n')
    writeFileSync(join(sql, 'people.csv'), 'email\n')

    const { exitCode, out, err } = await doorward(line, { folder: sql })
    expect(exitCode).toBe(1)
    expect(out + err).toContain('SQLITE_CONSTRAINT')
    expect(out + err).not.toMatch(canaries)
    expect((await doorward(`${line} --verbose`, { folder: sql })).err).toMatch(canaries)
    expect((await doorward(`${line} --verbose`, { folder })).err).toMatch(/cannot boot.*Cause: Error: insert into/s)
  })

  test('an error of the library is told in full, however long it is', async () => {
    const sentence = `createAuthRouter(): ${'one fault after the other. '.repeat(60)}The last.`
    const folder = appFolder(() => {
      throw new ConfigurationError(sentence)
    })

    expect((await doorward('purge', { folder })).err).toBe(`${sentence}\n`)
    expect((await doorward('doctor', { folder })).out).toContain(sentence)
  })

  test('a knexfile, too', async () => {
    const folder = emptyFolder()
    mkdirSync(join(folder, 'src'))
    writeFileSync(join(folder, 'package.json'), '{}')
    writeFileSync(join(folder, 'knexfile.js'), "throw Object.assign(new Error('postgres://app:hash-canary@db'), { code: 'ERR_DB' })\n")

    const { out, err } = await doorward('init --yes', { folder })
    expect(out + err).toContain('ERR_DB')
    expect(out + err).not.toMatch(canaries)
    expect((await doorward('init --yes --verbose', { folder })).err).toMatch(canaries)
  })
})
