import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import knex from 'knex'
import { Kysely, SqliteDialect } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigurationError, checkTables, createAuthTables, createKnexStore, knexCounters, knexOn } from '../../src'
import { storeContract } from '../../src/testing'
import { newAddress, password } from '../local/people'
import { newUser } from '../store/contract'
import { mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { type AppPool, kindsOf, openPool } from './pools'

const reachable = await databases()
const pools = reachable.flatMap((database) => kindsOf[database.name].map((kind) => ({ database, kind })))

describe.each(pools)('knexOn() on a pool of $kind', ({ database, kind }) => {
  let opened: OpenDatabase
  let app: AppPool
  beforeAll(async () => {
    opened = await database.open()
    if (!opened.config) throw new Error('the test shares a database')
    app = openPool(kind, opened.config)
    await createAuthTables(app.knex)
  })
  afterAll(async () => {
    await app?.close()
    await opened?.close()
  })

  for (const { name, run } of storeContract({ makeStore: async () => createKnexStore({ knex: app.knex }) })) test(name, run)

  test('a person signs up, logs in and refreshes', async () => {
    const host = await mount({ knex: app.knex, settings: { autoActivate: true } })
    const browser = host.browser()
    const email = newAddress()
    await browser.post('/auth/signup').send({ email, password }).expect(201)
    const { body } = await browser.post('/auth/login').send({ email, password }).expect(200)
    await browser.post('/auth/refresh').send({ refresh_token: body.refresh_token }).expect(200)
    await host.close()
  })

  test('many requests at once are all answered', async () => {
    const host = await mount({ knex: app.knex, settings: { autoActivate: true } })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => host.browser().post('/auth/signup').send({ email: newAddress(), password })),
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    await host.close()
  })

  test('destroy() lets the pool go, and the app goes on with it', async () => {
    if (!opened.config) throw new Error('the test shares a database')
    const other = openPool(kind, opened.config)
    await other.knex.raw('select 1')
    await other.knex.destroy()
    expect(await other.query('select 1 as one')).toBeDefined()
    await other.close()
  })
})

describe('on a database of better-sqlite3', () => {
  test('a request is 503 while a transaction of the app is open, writes nothing, and works afterwards', async () => {
    const handle = new Database(':memory:')
    const own = knexOn(handle)
    await createAuthTables(own)
    const host = await mount({ knex: own, settings: { autoActivate: true } })
    const signUp = () => host.browser().post('/auth/signup').send({ email: 'ada@example.test', password })
    handle.exec('begin')
    const refused = await signUp()
    expect([refused.status, refused.body.code]).toEqual([503, 'SERVICE_UNAVAILABLE'])
    handle.exec('commit')
    expect(handle.prepare('select count(*) as count from auth_users').get()).toEqual({ count: 0 })
    expect((await signUp()).status).toBe(201)
    await host.close()
    handle.close()
  })
})

describe('on a database of better-sqlite3 with defaultSafeIntegers()', () => {
  test('the check of the tables finds nothing, and a person signs up and logs in', async () => {
    const handle = new Database(':memory:')
    handle.defaultSafeIntegers(true)
    const own = knexOn(handle)
    await createAuthTables(own)
    expect(await checkTables(own)).toEqual([])
    const host = await mount({ knex: own, settings: { autoActivate: true } })
    const email = newAddress()
    await host.browser().post('/auth/signup').send({ email, password }).expect(201)
    await host.browser().post('/auth/login').send({ email, password }).expect(200)
    await host.close()
    handle.close()
  })
})

describe('on a database of better-sqlite3 on which the app begins a transaction of Kysely at any moment', () => {
  const undone = new Error('the app changed its mind')

  async function appOn(handle: InstanceType<typeof Database>) {
    const own = knexOn(handle)
    await createAuthTables(own)
    await own.schema.createTable('notes', (table) => void table.integer('number'))
    const db = new Kysely<{ notes: { number: number } }>({ dialect: new SqliteDialect({ database: handle }) })
    const writeAndUndo = async () =>
      db.transaction().execute(async (trx) => {
        await trx.insertInto('notes').values({ number: 1 }).execute()
        for (let turn = 0; turn < 40; turn++) await null
        await trx.insertInto('notes').values({ number: 2 }).execute()
        throw undone
      })
    return { own, store: createKnexStore({ knex: own }), writeAndUndo }
  }

  test('neither ends the transaction of the other, and each answer is what happened', async () => {
    const wrong: string[] = []
    for (let turns = 0; turns < 200; turns++) {
      const handle = new Database(':memory:')
      const { store, writeAndUndo } = await appOn(handle)
      const { email } = newUser()
      const unit = store.transaction(async ({ users }) => {
        await users.findByEmail(email)
        await users.insert(newUser({ email }))
      })
      const outcome = unit.then(
        () => 'committed',
        (error) => error.code,
      )
      for (let turn = 0; turn < turns; turn++) await null
      await writeAndUndo().catch(() => undefined)
      const result = await outcome
      const { users } = handle.prepare('select count(*) as users from auth_users').get() as { users: number }
      const { notes } = handle.prepare('select count(*) as notes from notes').get() as { notes: number }
      const isRight = result === 'committed' ? users === 1 : result === 'SERVICE_UNAVAILABLE' && users === 0
      if (!isRight || notes > 0 || handle.inTransaction) wrong.push(`after ${turns}: ${result}, ${users} users, ${notes} notes`)
      handle.close()
    }
    expect(wrong).toEqual([])
  })

  test('a statement that Knex sends while it is open is refused, and does not join it', async () => {
    const handle = new Database(':memory:')
    const { own, writeAndUndo } = await appOn(handle)
    const wrong: number[] = []
    for (let turns = 0; turns < 30; turns++) {
      const undoing = writeAndUndo().catch(() => undefined)
      for (let turn = 0; turn < turns; turn++) await null
      const expected = await own('notes')
        .insert({ number: 3 })
        .then(
          () => 1,
          () => 0,
        )
      await undoing
      const { kept } = handle.prepare('select count(*) as kept from notes').get() as { kept: number }
      if (kept !== expected) wrong.push(turns)
      handle.exec('delete from notes')
    }
    expect(wrong).toEqual([])
    handle.close()
  })
})

describe('on a database of better-sqlite3 that two parts of an app share', () => {
  test('a store and counters on two Knexes take turns, and count every attempt', async () => {
    const handle = new Database(':memory:')
    const store = createKnexStore({ knex: knexOn(handle) })
    const counting = knexOn(handle)
    await createAuthTables(counting)
    const counters = knexCounters(counting)
    const units = Array.from({ length: 40 }, () => store.transaction(async () => new Promise((resolve) => setTimeout(resolve, 2))))
    const counts = Promise.all(Array.from({ length: 40 }, () => counters.increment('key', 60)))
    await Promise.all(units)
    expect((await counts).map(({ count }) => count).sort((one, other) => one - other)).toEqual(
      Array.from({ length: 40 }, (_, at) => at + 1),
    )
    handle.close()
  })

  test('a connection that is given back twice, as after a stream, goes to one holder at a time', async () => {
    const handle = new Database(':memory:')
    const own = knexOn(handle)
    await own.schema.createTable('numbers', (table) => void table.integer('number'))
    await own('numbers').insert([{ number: 1 }, { number: 2 }])
    const read: unknown[] = []
    for await (const row of own('numbers').select('number').stream()) read.push(row)
    expect(read).toEqual([{ number: 1 }, { number: 2 }])
    const running = own.transaction(async (trx) => {
      await trx('numbers').insert({ number: 3 })
      await new Promise((resolve) => setTimeout(resolve, 20))
      await trx('numbers').insert({ number: 4 })
    })
    await Promise.all([running, ...Array.from({ length: 5 }, () => own('numbers').insert({ number: 5 }))])
    expect(await own('numbers').count({ count: '*' })).toEqual([{ count: 9 }])
    handle.close()
  })
})

describe.each(pools)('a connection of $kind that never comes free', ({ database, kind }) => {
  test('is 503 after five seconds, and the pool works again once it is free', async () => {
    const opened = await database.open()
    if (!opened.config) throw new Error('the test shares a database')
    const app = openPool(kind, opened.config, 1)
    const store = createKnexStore({ knex: app.knex })
    await createAuthTables(app.knex)
    let isDone: () => void = () => undefined
    const held = app.knex.transaction(async () => new Promise<void>((resolve) => (isDone = resolve)))
    await expect(store.users.find(randomUUID())).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    isDone()
    await held
    expect(await store.users.find(randomUUID())).toBeNull()
    await app.close()
    await opened.close()
  }, 20_000)
})

const killable = pools.filter(({ kind }) => kind !== 'better-sqlite3')
const ownPools = killable.filter(({ kind }) => kind === 'pg').map((one) => ({ ...one, kind: 'own connectionPool' as const }))

describe.each([...killable, ...ownPools])('a session that the server ends inside a sign-up, $kind', ({ database, kind }) => {
  test('answers 503, and the process lives and serves the next request', async () => {
    const opened = await database.open()
    const file = join(import.meta.dirname, 'killed-child.ts')
    const given = JSON.stringify({ kind, config: opened.config })
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file, given])
    expect(JSON.parse(stdout)).toEqual({ killed: [503, 'SERVICE_UNAVAILABLE'], next: 201 })
    await opened.close()
  }, 60_000)
})

describe('knexOn() refuses', () => {
  test.each([
    ['the options of a pool', { connectionString: 'postgres://localhost/app' }],
    ['a Knex', knex({ client: 'better-sqlite3', connection: ':memory:', useNullAsDefault: true })],
    ['nothing', undefined],
    ['a pool of another package that has getConnection', { getConnection: async () => ({}), end: async () => undefined }],
  ])('%s, by naming the pools that it takes', (_what, given) => {
    expect(() => knexOn(given as never)).toThrow(ConfigurationError)
    expect(() => knexOn(given as never)).toThrow(/Pool of pg, a pool of mysql2.*better-sqlite3/)
  })

  test('a Knex older than 3.3.0, by its version', () => {
    const require = createRequire(import.meta.url)
    const file = require.resolve('knex/package.json')
    const real = require(file)
    const cached = require.cache[file]
    if (!cached) throw new Error('the file was just loaded')
    cached.exports = { ...real, version: '3.2.10' }
    try {
      expect(() => knexOn(new Database(':memory:'))).toThrow(/Knex 3\.3\.0 or newer.*3\.2\.10/)
    } finally {
      cached.exports = real
    }
  })
})
