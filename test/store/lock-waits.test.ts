import type { Knex } from 'knex'
import { version as knexVersion } from 'knex/package.json'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAuthTables, createKnexStore, knexOn } from '../../src'
import type { AuthStore } from '../../src/store/auth-store'
import { type Database, databases, type OpenDatabase } from '../support/databases'
import { newUser } from './contract'

/** `knexOn` needs Knex 3.3.0; CI runs this file on older ones too. */
const hasAppPools = Number(knexVersion.split('.')[1]) >= 3

const postgres = (await databases()).find(({ name }) => name === 'postgres')

/** A pool of the app on the test's schema. */
function appPool({ config }: OpenDatabase, options: pg.PoolConfig): pg.Pool {
  const searchPath = [config?.searchPath].flat().join(',')
  const pool = new pg.Pool({ connectionString: String(config?.connection), options: `-c search_path=${searchPath}`, ...options })
  pool.on('error', () => undefined)
  return pool
}

interface Sized {
  readonly knex: Knex
  close(): Promise<unknown>
}

const pools: readonly (readonly [string, (opened: OpenDatabase, size: number, statementTimeoutMs?: number) => Sized])[] = [
  [
    "of the app's",
    (opened, max, statement_timeout) => {
      const pool = appPool(opened, { max, ...(statement_timeout !== undefined && { statement_timeout }) })
      return { knex: knexOn(pool), close: () => pool.end() }
    },
  ],
  [
    "of Knex's own",
    (opened, max, statement_timeout) => {
      const afterCreate = (client: pg.Client, done: (error: Error | null, client: pg.Client) => void) =>
        void client.query(`set statement_timeout = ${statement_timeout ?? 0}`).then(() => done(null, client))
      return { knex: opened.connect({ min: 0, max, afterCreate }), close: async () => undefined }
    },
  ],
]

describe.skipIf(!postgres).each(pools.slice(hasAppPools ? 0 : 1))('on a pool of PostgreSQL %s', (_whose, openPool) => {
  let opened: OpenDatabase
  let holder: Knex.Transaction
  let id: string
  const pooled: Sized[] = []

  beforeEach(async () => {
    opened = await (postgres as Database).open()
    await createAuthTables(opened.knex)
    const user = await createKnexStore({ knex: opened.knex }).users.insert(newUser({ name: 'before' }))
    id = user.id
    holder = await opened.knex.transaction()
    await holder.raw('select 1 from auth_users for update')
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    if (!holder.isCompleted()) await holder.rollback()
    await Promise.all(pooled.splice(0).map(({ close }) => close()))
    await opened.close()
  })

  function poolOf(size: number, statementTimeoutMs?: number) {
    const pool = openPool(opened, size, statementTimeoutMs)
    pooled.push(pool)
    const { knex } = pool
    return { knex, store: createKnexStore({ knex }) as AuthStore }
  }

  const rename = (store: AuthStore, deadlineMs?: number) =>
    store.transaction(({ users }) => users.update(id, { name: 'after' }), deadlineMs === undefined ? {} : { deadlineMs })

  const waiting = async () => {
    const { rows } = await opened.knex.raw('select pid from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0')
    return rows.length
  }

  const limitOf = async (knex: Knex) => (await knex.raw('show statement_timeout')).rows[0].statement_timeout

  /** Each statement that reaches the driver, and whether the connection was still busy with another. */
  function sent() {
    const statements: { text: string; isBusy: boolean }[] = []
    const query = pg.Client.prototype.query as (...given: unknown[]) => unknown
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...given: unknown[]) {
      const { _activeQuery, _ending } = this as unknown as { _activeQuery?: object | null; _ending: boolean } // as the driver has them
      const [asked] = given as [string | { text: string }]
      if (!_ending) statements.push({ text: typeof asked === 'string' ? asked : asked.text, isBusy: Boolean(_activeQuery) })
      return query.apply(this, given)
    } as never)
    return statements
  }

  test('two transactions that wait for a lock past their deadline give both connections back while the lock is held', async () => {
    const { knex, store } = poolOf(2)
    await Promise.all([1, 2].map(() => knex.raw('select pg_sleep(0.05)'))) // both connections are open
    const statements = sent()
    const units = await Promise.allSettled([1, 2].map(() => rename(store, 300)))
    expect(units.map((unit) => unit.status === 'rejected' && unit.reason.code)).toEqual(['SERVICE_UNAVAILABLE', 'SERVICE_UNAVAILABLE'])
    expect(await Promise.all([1, 2].map(() => store.users.find(id)))).toMatchObject([{ name: 'before' }, { name: 'before' }])
    await vi.waitFor(async () => expect(await waiting()).toBe(0), { timeout: 2_000 })
    expect(holder.isCompleted()).toBe(false)
    expect(statements.filter(({ text }) => text.startsWith('update'))).toHaveLength(2)
    expect(statements.filter(({ isBusy }) => isBusy)).toEqual([])
  })

  test('a statement that began late is not waited for: its connection is closed, and another takes its place', async () => {
    const { knex, store } = poolOf(1)
    const before = (await knex.raw('select pg_backend_pid() as pid')).rows[0].pid
    const statements = sent()
    const unit = store.transaction(
      async ({ users }) => {
        await new Promise((resolve) => setTimeout(resolve, 1_500))
        return users.update(id, { name: 'after' })
      },
      { deadlineMs: 2_000 },
    )
    await expect(unit).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    expect((await knex.raw('select pg_backend_pid() as pid')).rows[0].pid).not.toBe(before)
    expect(statements.filter(({ isBusy }) => isBusy)).toEqual([])
    await vi.waitFor(async () => expect(await waiting()).toBe(0), { timeout: 10_000 }) // the server ends it, although nobody listens
    await holder.rollback()
    expect((await store.users.find(id))?.name).toBe('before')
  })

  test.each([
    ['none', 0, '0'],
    ['a higher one', 7_200_000, '2h'],
    ['a lower one', 90_000, '90s'],
  ])('where the session has %s of its own, statement_timeout is as before after each transaction', async (_what, ms, shown) => {
    const { knex, store } = poolOf(1, ms)
    await holder.rollback()
    expect(await rename(store, 600_000)).toBe(true)
    await expect(store.transaction(() => Promise.reject(new Error('no')), { deadlineMs: 600_000 })).rejects.toThrow('no')
    expect(await limitOf(knex)).toBe(shown)
  })

  test("a lower statement_timeout of the host's ends a statement before the deadline, from the first transaction on", async () => {
    const { knex, store } = poolOf(1, 200)
    await knex.raw('select 1')
    const statements = sent()
    for (let round = 0; round < 2; round++)
      await expect(rename(store, 600_000)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE', message: expect.stringMatching(/57014/) })
    expect(await limitOf(knex)).toBe('200ms')
    // One statement more, on the first transaction of the connection alone.
    expect(statements.map(({ text }) => text.split(/[\s;]/)[0])).toEqual([
      'BEGIN',
      'SET',
      'update',
      'ROLLBACK',
      'BEGIN',
      'update',
      'ROLLBACK',
      'show',
    ])
  })

  test('so does one that the host sets in the session later', async () => {
    const { knex, store } = poolOf(1)
    await expect(rename(store, 300)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    await knex.raw("set statement_timeout = '250ms'")
    await expect(rename(store, 600_000)).rejects.toMatchObject({ message: expect.stringMatching(/57014/) })
    await knex.raw('set statement_timeout = 0')
    await holder.rollback()
    expect(await rename(store, 600_000)).toBe(true)
    expect(await limitOf(knex)).toBe('0')
  })

  test('a transaction without a deadline, and one of the host, have no limit but that of the session', async () => {
    const { knex, store } = poolOf(1, 90_000)
    await holder.rollback()
    await knex.raw('select 1')
    const statements = sent()
    expect(await rename(store)).toBe(true)
    await knex.transaction(async (trx) => void (await (store as ReturnType<typeof createKnexStore>).using(trx).users.find(id)))
    expect(statements.filter(({ text }) => /statement_timeout/.test(text))).toEqual([])
  })

  test('a deadline longer than PostgreSQL can count is the longest that it can', async () => {
    const { store } = poolOf(1)
    await holder.rollback()
    expect(await rename(store, 2 ** 31 - 1)).toBe(true)
  })

  test('a BEGIN that fails half-way leaves no open transaction to the next', async () => {
    const { knex, store } = poolOf(1)
    await knex.raw('select 1')
    const prototype = Object.getPrototypeOf(knex.client)
    const query: (...given: unknown[]) => Promise<unknown> = prototype.query
    vi.spyOn(knex.client.logger, 'warn').mockImplementation(() => {})
    vi.spyOn(prototype, 'query').mockImplementationOnce(function (this: unknown, ...[connection, asked]: unknown[]) {
      return query.call(this, connection, `${asked}; select 1 / 0`)
    })
    await expect(rename(store, 60_000)).rejects.toThrow(/transaction \(22012\)/)
    expect((await store.users.find(id))?.name).toBe('before')
  })
})
