import knex, { type Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, createAuthTables, knexCounters } from '../../src'
import { ServiceUnavailableError } from '../../src/core/errors'
import { bindCounterRows } from '../../src/store/knex/counter-rows'
import { databases, type OpenDatabase } from '../support/databases'

const minute = 60_000

describe.each(await databases())('knexCounters on $name', (database) => {
  let opened: OpenDatabase
  let at = Date.now()
  const now = () => at
  beforeAll(async () => {
    opened = await database.open()
    await createAuthTables(opened.knex)
  })
  afterAll(() => opened?.close())

  const rows = (): Promise<{ counter_key: string; count: number }[]> => opened.knex('auth_counters').orderBy('counter_key')

  /** Rows as a process left them that is no more. */
  const plant = (many: number, endsAt: number) => {
    const planted = Array.from({ length: many }, (_, index) => ({ counter_key: `planted ${endsAt} ${index}`, count: 1, ends_at: endsAt }))
    return opened.knex.batchInsert('auth_counters', planted, 200)
  }

  test('ended rows go as new windows open, open ones stay, and there is no timer', async () => {
    await plant(1_500, at - 2 * minute)
    await plant(3, at - minute / 2) // may still be open by the clock of another process
    await plant(3, at + minute)
    vi.useFakeTimers({ toFake: ['setInterval'] })
    const counters = knexCounters(opened.knex, { now })
    for (let unit = 0; unit < 5; unit++) await counters.increment('first', 900)
    await vi.waitFor(async () => expect(await rows()).toHaveLength(507), { timeout: 5_000 }) // the first window: 1,000 at most
    for (let window = 0; window < 100; window++) await counters.increment(`window ${window}`, 900)
    await vi.waitFor(async () => expect(await rows()).toHaveLength(107), { timeout: 5_000 })
    expect((await rows()).filter(({ counter_key: key }) => key.startsWith('planted'))).toHaveLength(6)
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
    await opened.knex('auth_counters').delete()
  })

  if (database.name !== 'sqlite') {
    // There nobody writes beside the clean-up.
    test('a window that opens anew while ended ones are deleted stays', async () => {
      await plant(2, at - 2 * minute)
      const [{ counter_key: kept } = { counter_key: '' }] = await rows()
      const holding = await opened.knex.transaction()
      await holding('auth_counters')
        .where({ counter_key: kept })
        .update({ ends_at: at + minute })
      const removal = bindCounterRows(opened.knex).removeEnded(at - minute, 1_000)
      await new Promise((resolve) => setTimeout(resolve, 100)) // it waits for the row by now
      await holding.commit()
      await removal
      expect((await rows()).map((row) => row.counter_key)).toEqual([kept])
      await opened.knex('auth_counters').delete()
    })
  }

  test('a failed clean-up is no failed count', async () => {
    const counters = knexCounters(failingAt(opened.connect(), 'delete'), { now })
    expect(await counters.increment('clean-up', 900)).toEqual({ count: 1, resetSeconds: 900 })
    await expect(counters.reset('clean-up')).rejects.toThrow()
  })

  test('clocks of two processes that differ a little count in one window', async () => {
    const [early, late] = [-40, 40].map((skew) => knexCounters(opened.knex, { now: () => at + skew }))
    if (!early || !late) throw new Error('two')
    expect(await early.increment('skew', 900)).toEqual({ count: 1, resetSeconds: 900 })
    expect(await late.increment('skew', 900)).toEqual({ count: 2, resetSeconds: 900 })
    expect(await early.increment('skew', 900)).toEqual({ count: 3, resetSeconds: 900 })
    at += 900_000
    expect(await late.increment('skew', 900)).toEqual({ count: 1, resetSeconds: 900 })
    expect((await early.increment('skew', 900)).count).toBe(2)
  })

  test('a host that maps names between snake_case and camelCase has the same counts', async () => {
    const mapped = opened.connect()
    const camelRow = (row: object) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]))
    Object.assign(mapped.client.config, {
      wrapIdentifier: (name: string, wrap: (name: string) => string) =>
        wrap(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
      postProcessResponse: (response: unknown) =>
        Array.isArray(response) ? response.map((row) => (typeof row === 'object' ? camelRow(row) : row)) : response,
    })
    const counters = knexCounters(mapped, { now })
    expect(await counters.increment('mapped', 900)).toEqual({ count: 1, resetSeconds: 900 })
    expect(await counters.increment('mapped', 60)).toEqual({ count: 2, resetSeconds: 900 })
    await counters.decrement('mapped')
    expect((await rows()).find(({ counter_key: key }) => key === 'mapped')).toMatchObject({ count: 1 })
    await counters.reset('mapped')
    expect((await counters.increment('mapped', 60)).count).toBe(1)
  })

  test('a transaction is refused, since what is counted has to survive its rollback', async () => {
    await opened.knex.transaction(async (trx) => {
      expect(() => knexCounters(trx)).toThrow(ConfigurationError)
      expect(() => knexCounters(trx)).toThrow('not a transaction')
    })
  })

  test('without its table it fails with the fix, and without the key', async () => {
    const bare = await database.open()
    const failure = await knexCounters(bare.knex)
      .increment('somebody', 900)
      .catch((error: Error) => error)
    expect(String(failure)).toContain('run createAuthTables() or the migrations')
    expect(JSON.stringify(failure) + String(failure)).not.toContain('somebody')
    await bare.close()
  })
})

const mariadb = (await databases()).find(({ name }) => name === 'mariadb')
if (mariadb) {
  test("on MariaDB options of the host's driver change no count", async () => {
    const opened = await mariadb.open({ driver: { supportBigNumbers: true, bigNumberStrings: true, flags: ['-FOUND_ROWS'] } })
    await createAuthTables(opened.knex)
    let at = 0
    const counters = knexCounters(opened.knex, { now: () => at })
    expect(await counters.increment('a', 900)).toEqual({ count: 1, resetSeconds: 900 })
    expect(await counters.increment('a', 60)).toEqual({ count: 2, resetSeconds: 900 })
    at = 900_000
    expect(await counters.increment('a', 31_536_000)).toEqual({ count: 1, resetSeconds: 31_536_000 })
    expect(await counters.increment('a', 60)).toEqual({ count: 2, resetSeconds: 31_536_000 })
    await opened.close()
  })
}

test('a database that is away is a rejection, without what was counted', async () => {
  const away = knex({
    client: 'pg',
    connection: 'postgres://postgres@127.0.0.1:1/none',
    acquireConnectionTimeout: 500,
    log: { debug() {}, warn() {}, error() {} },
  })
  const failure = await knexCounters(away)
    .increment('somebody', 900)
    .catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(ServiceUnavailableError)
  expect(String((failure as Error).cause)).not.toContain('somebody')
  await away.destroy()
})

test.each([
  [undefined, 'needs the instance'],
  [{}, 'needs the instance'],
  [knex({ client: 'cockroachdb' }), 'does not support the knex client'],
])('anything but an instance of a supported client is refused: %#', (given, sentence) => {
  expect(() => knexCounters(given as Knex)).toThrow(ConfigurationError) // wrong on purpose
  expect(() => knexCounters(given as Knex)).toThrow(sentence)
})

/** Statements of one kind fail on this pool. */
function failingAt(db: Knex, verb: string): Knex {
  const { client } = db
  const query: (connection: unknown, statement: { sql: string }) => Promise<unknown> = client.query.bind(client)
  client.query = (connection: unknown, statement: { sql: string }) =>
    statement.sql.startsWith(verb) ? Promise.reject(new Error('no')) : query(connection, statement)
  return db
}
