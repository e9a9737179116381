import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import knex from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { trustedStore } from '../../src/context'
import type { UnitOptions } from '../../src/store/auth-store'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { databases, type OpenDatabase, type OpenOptions } from '../support/databases'
import { logTap } from '../support/log-tap'
import { AT, hashOf, later, newIdentity, newSession, newUser, newUserToken, rotationOf, storeContract } from './contract'

const reachable = await databases()

type Done = (error: unknown) => void
interface MysqlConnection {
  query(sql: string, done: Done): void
}

const SETTINGS: readonly { title: string; name: string; options: OpenOptions }[] = [
  { title: 'a SQLite file', name: 'sqlite', options: {} },
  { title: 'SQLite in memory', name: 'sqlite', options: { memory: true } },
  { title: 'PostgreSQL', name: 'postgres', options: {} },
  { title: 'MariaDB', name: 'mariadb', options: {} },
  {
    title: 'MariaDB, whose driver writes and reads local time of Tokyo, in a session of another zone',
    name: 'mariadb',
    options: {
      driver: { timezone: '+09:00', dateStrings: false },
      pool: {
        min: 0,
        max: 5,
        afterCreate: (connection: MysqlConnection, done: Done) => connection.query("set time_zone = '-03:00'", done),
      },
    },
  },
  {
    title: 'MariaDB, whose driver returns dates as text',
    name: 'mariadb',
    options: { driver: { dateStrings: true, supportBigNumbers: true, bigNumberStrings: true } },
  },
  { title: 'MariaDB, whose driver counts only changed rows', name: 'mariadb', options: { driver: { flags: ['-FOUND_ROWS'] } } },
  { title: 'MariaDB with a pool of one', name: 'mariadb', options: { pool: { min: 1, max: 1 } } },
  { title: 'PostgreSQL with a pool of one', name: 'postgres', options: { pool: { min: 1, max: 1 } } },
]

for (const { title, name, options } of SETTINGS) {
  const database = reachable.find((candidate) => candidate.name === name)

  describe.skipIf(!database)(`the store on ${title}`, () => {
    let opened: OpenDatabase
    let store: KnexStore

    beforeAll(async () => {
      if (!database) return
      opened = await database.open(options)
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
    })
    afterAll(() => opened?.close())

    for (const { name: promise, run } of storeContract({ makeStore: async () => store })) test(promise, run)

    test('a new user gets a UUID v4', async () => {
      const { id } = await store.users.insert(newUser())
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    })

    test('a text that a column cannot hold is refused before the database, whatever the database thinks', async () => {
      const { id } = await store.users.insert(newUser())
      const refused = { code: 'VALIDATION_ERROR' }
      for (const name of ['a\0b', 'a\ud800b', '\udc00']) {
        await expect(store.users.insert(newUser({ name }))).rejects.toMatchObject(refused)
        await expect(store.users.update(id, { name })).rejects.toMatchObject(refused)
        const login = store.users.recordLogin({ id, hashedPassword: '$argon2id$fake' }, AT, { hashedPassword: name })
        await expect(login).rejects.toMatchObject(refused)
      }
      await expect(store.users.insert(newUser({ email: `${'a'.repeat(320)}@example.test` }))).rejects.toMatchObject(refused)
      await expect(store.identities.insert(newIdentity(id, { subject: 'x'.repeat(256) }))).rejects.toMatchObject(refused)
      await store.identities.insert(newIdentity(id, { subject: 'x'.repeat(255) }))
    })

    test("inside the host's transaction our rows are undone by the host's rollback", async () => {
      const email = newUser().email
      const trx = await opened.knex.transaction()
      await store.using(trx).transaction((inside) => inside.users.insert(newUser({ email })))
      await trx.rollback()
      expect(await store.users.findByEmail(email)).toBeNull()
    })

    test("inside the host's transaction our rows are kept by the host's commit", async () => {
      const email = newUser().email
      await opened.knex.transaction(async (trx) => {
        const { id } = await store.using(trx).users.insert(newUser({ email }))
        await trx('auth_users').where({ id }).update({ name: 'by the host' })
      })
      expect((await store.users.findByEmail(email))?.name).toBe('by the host')
    })

    test('using() takes nothing but a transaction', () => {
      // @ts-expect-error the type says so too
      expect(() => store.using(opened.knex)).toThrow(/knex\.transaction/)
    })

    test('no verb waits for a second connection inside a unit', async () => {
      await store.transaction(async (inside) => {
        const user = await inside.users.insert(newUser())
        const identity = newIdentity(user.id)
        await inside.identities?.insert(identity)
        await inside.identities?.recordLogin(identity, later(1))
        const session = newSession(user.id)
        await inside.sessions?.insert(session)
        await inside.sessions?.rotate(rotationOf(session.tokenHash))
        await inside.sessions?.revokeForUser(user.id, later(1))
        await inside.recoveryCodes?.replaceForUser(user.id, [hashOf('a')])
        const oneShot = await inside.userTokens.insert(newUserToken(user.id))
        await inside.users.recordLogin(user, later(1), { hashedPassword: 'rehashed' })
        await inside.userTokens.find(oneShot.tokenHash)
        await inside.userTokens.wasConsumed(user.id, 'ACTIVATION')
        await inside.userTokens.consumeAllForUser(user.id, later(1))
        await inside.users.lock(user.id)
      })
    }, 4000)

    test('a refused statement tells the verb and the code, and nothing that was bound', async () => {
      const secret = 'canary-5f3a'
      const email = `${secret}@example.test`
      await store.users.insert(newUser({ email }))
      const failures = [
        await failure(store.users.insert(newUser({ email, hashedPassword: secret }))),
        await failure(store.identities.insert(newIdentity('00000000-0000-4000-8000-000000000000', { subject: secret }))),
        // @ts-expect-error a caller without types
        await failure(store.users.insert(newUser({ name: secret, isAdmin: null }))),
      ]
      for (const error of failures) expect(printed(error)).not.toContain(secret)
      expect(failures.map((error) => /(\w+\.insert)/.exec(error.message)?.[1])).toEqual([
        'users.insert',
        'identities.insert',
        'users.insert',
      ])
    })
  })
}

test('a SQLite of several connections is warned of, which would stop the process; one is not, nor a server', async () => {
  const told: string[] = []
  const options = { useNullAsDefault: true, log: { warn: (message: string) => void told.push(message) } }
  for (const [client, max] of [
    ['better-sqlite3', 1],
    ['better-sqlite3', 2],
    ['pg', 5],
  ] as const) {
    const instance = knex({ ...options, client, connection: { filename: ':memory:' }, pool: { min: 0, max } })
    createKnexStore({ knex: instance })
    await instance.destroy()
  }
  expect(told).toEqual([expect.stringMatching(/pool: \{ min: 1, max: 1 \}/)])
})

test('what is compiled inside a transaction keeps nothing of it', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void // only there with the flag
  const [sqlite] = reachable
  const opened = await sqlite?.open({ memory: true })
  if (!opened) throw new Error('SQLite is always there')
  await createAuthTables(opened.knex)
  const store = createKnexStore({ knex: opened.knex })
  const clients = new Set<WeakRef<object>>()
  const prototype = Object.getPrototypeOf(opened.knex.client)
  const { query } = prototype
  prototype.query = function (...asked: unknown[]) {
    if (this !== opened.knex.client) clients.add(new WeakRef(this))
    return query.apply(this, asked)
  }
  const { id } = await store.users.insert(newUser())
  const session = newSession(id)
  await store.transaction(async ({ users, sessions }) => {
    await users.recordLogin({ id, hashedPassword: 'a hash' }, AT)
    await sessions?.insert(session)
    await sessions?.rotate(rotationOf(session.tokenHash))
  })
  prototype.query = query
  for (let turn = 0; turn < 5; turn++) {
    await new Promise(setImmediate)
    collect()
  }
  expect(clients.size).toBeGreaterThan(0)
  expect([...clients].filter((client) => client.deref() !== undefined)).toEqual([])
  await opened.close()
})

test('a collection of young objects frees the result of a unit', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void // only there with the flag
  const [sqlite] = reachable
  const opened = await sqlite?.open({ memory: true })
  if (!opened) throw new Error('SQLite is always there')
  const store = createKnexStore({ knex: opened.knex })
  const megabyte = () => Array.from({ length: 128 }, () => new Array(1024).fill(0.5))
  async function bytesKept(units: number, options?: UnitOptions): Promise<number> {
    collect({ type: 'minor' })
    const before = process.memoryUsage().heapUsed
    for (let times = 0; times < units; times++) await store.transaction(async () => megabyte(), options)
    for (let turn = 0; turn < 3; turn++) {
      await new Promise(setImmediate)
      collect({ type: 'minor' })
    }
    return process.memoryUsage().heapUsed - before
  }
  await bytesKept(20)
  expect(await bytesKept(20)).toBeLessThan(5_000_000)
  expect(await bytesKept(20, { deadlineMs: 60_000 })).toBeLessThan(5_000_000)
  await opened.close()
})

test('a key of other letters from a column that ignores case is nobody’s', async () => {
  const sqlite = reachable.find(({ name }) => name === 'sqlite')
  const opened = await sqlite?.open({ memory: true })
  if (!opened) throw new Error('SQLite is always there')
  await createAuthTables(opened.knex)
  for (const table of ['auth_users', 'auth_identities', 'auth_sessions']) {
    const { sql } = await opened.knex('sqlite_master').where({ type: 'table', name: table }).first('sql')
    await opened.knex.schema.dropTable(table)
    await opened.knex.raw(sql.replace(table === 'auth_users' ? /\bid varchar\(36\)/ : /\buser_id varchar\(36\)/, '$& collate nocase'))
  }
  const store = createKnexStore({ knex: opened.knex, users: { ids: 'text', insertDefaults: () => ({ id: 'AbC' }) } })
  const { id } = await store.users.insert(newUser())
  await store.sessions.insert(newSession(id))
  const { provider, subject } = await store.identities.insert(newIdentity(id))
  const asked = async (userId: string) => [
    (await store.users.find(userId))?.id,
    (await store.users.lock(userId))?.id,
    (await store.identities.recordLogin({ userId, provider, subject }, AT))?.id,
    (await store.users.list({ filters: [{ field: 'id', operator: 'eq', value: userId }], after: null, limit: 9 })).users.map(
      ({ id }) => id,
    ),
    (await store.identities.listForUser(userId)).map((identity) => identity.userId),
    (await store.sessions.listForUser(userId, AT)).map((session) => session.userId),
  ]

  expect(await opened.knex('auth_users').where({ id: 'aBc' }), 'the column does ignore case').toHaveLength(1)
  expect(await asked('AbC')).toEqual(['AbC', 'AbC', 'AbC', ['AbC'], ['AbC'], ['AbC']])
  expect(await asked('aBc')).toEqual([undefined, undefined, undefined, [], [], []])
  await opened.close()
})

test('a store of createKnexStore is used as it is, one around it is compared with what was asked', async () => {
  const sqlite = reachable.find(({ name }) => name === 'sqlite')
  const opened = await sqlite?.open({ memory: true })
  if (!opened) throw new Error('SQLite is always there')
  const [store, logger] = [createKnexStore({ knex: opened.knex }), logTap()]
  expect(trustedStore(store, logger)).toBe(store)
  expect(trustedStore({ ...store }, logger).users).not.toBe(store.users)
  await opened.knex.transaction(async (trx) => {
    const inside = store.using(trx)
    expect(trustedStore(inside, logger)).toBe(inside)
  })
  await opened.close()
})

test('a near match from a column that ignores case is not found', async () => {
  const sqlite = reachable.find(({ name }) => name === 'sqlite')
  const opened = await sqlite?.open({ memory: true })
  if (!opened) throw new Error('SQLite is always there')
  try {
    await createAuthTables(opened.knex)
    for (const [table, columns] of [
      ['auth_users', ['email']],
      ['auth_identities', ['provider', 'subject']],
      ['auth_sessions', ['token_hash']],
      ['auth_user_tokens', ['token_hash', 'purpose']],
    ] as const) {
      const { sql } = await opened.knex('sqlite_master').where({ type: 'table', name: table }).first('sql')
      await opened.knex.schema.dropTable(table)
      await opened.knex.raw(
        columns.reduce((ddl, column) => ddl.replace(new RegExp(`${column} varchar\\(\\d+\\)`), '$& collate nocase'), sql),
      )
    }
    const store = createKnexStore({ knex: opened.knex })
    const user = await store.users.insert(newUser())
    const { subject } = await store.identities.insert(newIdentity(user.id, { subject: 'AbC' }))
    const session = newSession(user.id)
    await store.sessions.insert(session)
    const row = await opened.knex('auth_identities').where({ subject: 'aBc', provider: 'GOOGLE' })
    expect(row, 'the column does ignore case').toHaveLength(1)
    expect(await store.identities.findWithUser('google', 'abc')).toBeNull()
    expect(await store.identities.findWithUser('Google', subject)).toBeNull()
    expect(await store.identities.findWithUser('google', subject)).not.toBeNull()
    expect(await store.users.findByEmail(user.email.toUpperCase())).toBeNull()
    expect(await store.sessions.find({ tokenHash: session.tokenHash.toUpperCase(), kind: session.kind })).toBeNull()
    const { tokenHash } = await store.userTokens.insert(newUserToken(user.id, { purpose: 'ACTIVATION' }))
    await store.userTokens.consume(tokenHash, 'ACTIVATION', AT)
    expect(await store.userTokens.find(tokenHash.toUpperCase())).toBeNull()
    expect(await store.userTokens.find(tokenHash)).not.toBeNull()
    expect(await store.userTokens.wasConsumed(user.id, 'activation' as 'ACTIVATION')).toBe(false) // what a careless host could pass
    expect(await store.userTokens.wasConsumed(user.id, 'ACTIVATION')).toBe(true)
  } finally {
    await opened.close()
  }
})

const postgres = reachable.find(({ name }) => name === 'postgres')

test.skipIf(!postgres)('on PostgreSQL a verb is one statement; a replaced set is a unit', async () => {
  if (!postgres) return
  const opened = await postgres.open()
  try {
    await createAuthTables(opened.knex)
    const store = createKnexStore({ knex: opened.knex })
    const user = await store.users.insert(newUser())
    const link = newIdentity(user.id)
    const session = newSession(user.id)
    let statements = 0
    opened.knex.on('query', () => statements++)
    const counted = async (verb: () => Promise<unknown>) => {
      statements = 0
      await verb()
      return statements
    }
    expect(await counted(() => store.users.insert(newUser()))).toBe(1)
    expect(await counted(() => store.users.find(user.id))).toBe(1)
    expect(await counted(() => store.users.findByEmail(user.email))).toBe(1)
    expect(await counted(() => store.users.update(user.id, { name: 'x' }))).toBe(1)
    expect(await counted(() => store.users.lock(user.id))).toBe(1)
    expect(await counted(() => store.users.advanceTotpStep(user.id, 1))).toBe(1)
    expect(await counted(() => store.users.recordLogin(user, later(1), { hashedPassword: 'x' }))).toBe(1)
    expect(await counted(() => store.identities.insert(link))).toBe(1)
    expect(await counted(() => store.identities.findWithUser('google', link.subject))).toBe(1)
    expect(await counted(() => store.identities.recordLogin(link, later(1)))).toBe(1)
    expect(await counted(() => store.userTokens.consume(hashOf('x'), 'ACTIVATION', later(1)))).toBe(1)
    expect(await counted(() => store.userTokens.find(hashOf('x')))).toBe(1)
    expect(await counted(() => store.userTokens.wasConsumed(user.id, 'ACTIVATION'))).toBe(1)
    expect(await counted(() => store.userTokens.consumeAllForUser(user.id, later(1)))).toBe(1)
    expect(await counted(() => store.sessions.insert(session))).toBe(1)
    expect(await counted(() => store.sessions.rotate(rotationOf(session.tokenHash)))).toBe(1)
    expect(await counted(() => store.sessions.find({ id: session.id }))).toBe(1)
    expect(await counted(() => store.sessions.update(session.id, { amr: 'pwd' }))).toBe(1)
    expect(await counted(() => store.sessions.revokeForUser(user.id, later(1)))).toBe(1)
    expect(await counted(() => store.recoveryCodes.replaceForUser(user.id, [hashOf('a'), hashOf('b')]))).toBe(5)
    expect(await counted(() => store.recoveryCodes.consume(user.id, hashOf('a'), later(1)))).toBe(1)
    expect(await counted(() => store.sessions.find({ tokenHash: hashOf('x'), kind: 'session' }))).toBe(1)
    expect(await counted(() => store.users.find('not an id'))).toBe(0)
  } finally {
    await opened.close()
  }
})

async function failure(promise: Promise<unknown>): Promise<Error> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof Error)) throw new Error('expected a failure')
  return error
}

/** Everything a logger or `console.error` could show. */
function printed(error: Error): string {
  return inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error, Object.getOwnPropertyNames(error))
}
