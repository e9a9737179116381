import { inspect } from 'node:util'
import BetterSqlite from 'better-sqlite3'
import knex, { type Knex } from 'knex'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, ServiceUnavailableError } from '../../src/core/errors'
import { createKnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { databases, type OpenDatabase } from '../support/databases'
import { newSession, newUser, rotationOf } from './contract'

const reachable = await databases()
const sqlite = reachable.find(({ name }) => name === 'sqlite')

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function begun(database: OpenDatabase, pool: Knex = database.knex) {
  cleanUps.push(() => database.close())
  await createAuthTables(database.knex)
  const statements: string[] = []
  pool.on('query', ({ sql }: { sql: string }) => statements.push(sql))
  return { store: createKnexStore({ knex: pool }), statements }
}

describe('a SQLite file that another process holds', () => {
  async function busyFile() {
    if (!sqlite) throw new Error('SQLite is always there')
    const database = await sqlite.open()
    // The driver waits 5 s by itself; here it gives up at once.
    const impatient = (connection: BetterSqlite.Database, done: (error: null, connection: unknown) => void) => {
      connection.pragma('busy_timeout = 10')
      done(null, connection)
    }
    const begunFile = await begun(database, database.connect({ min: 1, max: 1, afterCreate: impatient }))
    const other = new BetterSqlite(fileOf(database), { timeout: 0 })
    cleanUps.push(() => other.close())
    return { ...begunFile, other }
  }

  test('C23: a unit waits as long as the driver does, once, and is a 503', async () => {
    const { store, statements, other } = await busyFile()
    other.exec('begin immediate')
    await expect(store.transaction((inside) => inside.users.insert(newUser()))).rejects.toBeInstanceOf(ServiceUnavailableError)
    expect(statements.filter((sql) => sql === 'BEGIN IMMEDIATE;')).toHaveLength(1)
    other.exec('rollback')
    expect(await store.transaction((inside) => inside.users.insert(newUser()))).toBeTruthy()
  })

  test('C23: so does a single verb', async () => {
    const { store, statements, other } = await busyFile()
    other.exec('begin immediate')
    await expect(store.users.insert(newUser())).rejects.toBeInstanceOf(ServiceUnavailableError)
    expect(statements.filter((sql) => sql.startsWith('insert'))).toHaveLength(1)
  })

  test('a unit that reads first holds the write lock already', async () => {
    const { store, other } = await busyFile()
    await store.transaction(async (inside) => {
      await inside.users.findByEmail('nobody@example.test')
      expect(() => other.exec('begin immediate')).toThrow(/locked/)
    })
  })

  test('so does a unit that begins with a guarded change, which takes the lock without another statement', async () => {
    const { store, statements, other } = await busyFile()
    const user = await store.users.insert(newUser())
    statements.splice(0)
    await store.transaction(async (inside) => {
      expect(await inside.users.recordLogin(user, new Date())).toMatchObject({ id: user.id })
      expect(() => other.exec('begin immediate')).toThrow(/locked/)
      await inside.users.findByEmail(user.email)
    })
    expect(statements.filter((sql) => sql === 'BEGIN IMMEDIATE;')).toEqual([])
    other.exec('begin immediate')
    const waiting = store.transaction((inside) => inside.users.recordLogin(user, new Date()))
    await expect(waiting).rejects.toBeInstanceOf(ServiceUnavailableError)
  })

  test('a guarded change that changes nothing holds the lock too', async () => {
    const { store, other } = await busyFile()
    const user = await store.users.insert(newUser({ isActive: false }))
    await store.transaction(async (inside) => {
      expect(await inside.users.recordLogin(user, new Date())).toBeNull()
      expect(() => other.exec('begin immediate')).toThrow(/locked/)
    })
  })

  test('a unit that did not get the lock writes nothing more, even if its work goes on', async () => {
    const { store, other } = await busyFile()
    const { email } = newUser()
    other.exec('begin immediate')
    const unit = store.transaction(async (inside) => {
      await inside.users.findByEmail(email).catch(() => other.exec('rollback'))
      await inside.users.insert(newUser({ email })).catch(() => undefined)
    })
    await expect(unit).rejects.toBeInstanceOf(ServiceUnavailableError)
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('a refused COMMIT does not leave the connection inside its transaction', async () => {
    const { store, other } = await busyFile()
    const { id } = await store.users.insert(newUser())
    const reader = other.prepare('select id from auth_users').iterate()
    reader.next() // holds a read lock: the other side may write, and not commit
    await expect(store.transaction((inside) => inside.users.update(id, { name: 'lost' }))).rejects.toBeInstanceOf(ServiceUnavailableError)
    reader.return?.()
    expect((await store.users.find(id))?.name).not.toBe('lost')
    await store.transaction((inside) => inside.users.update(id, { name: 'kept' }))
    expect(other.prepare('select name from auth_users').pluck().get()).toBe('kept')
  })
})

/** Cuts the connection of a transaction that is open in this database. */
const CUT = {
  postgres: async ({ knex, config }: OpenDatabase) =>
    knex.raw(
      "select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction' and pid in (select pid from pg_locks where relation = ?::regclass)",
      [`${config?.searchPath?.[0]}.auth_users`],
    ),
  mariadb: async ({ knex }: OpenDatabase) => {
    const [[{ id }]] = await knex.raw('select id from information_schema.processlist where db = database() and id <> connection_id()')
    return knex.raw('kill ?', [id])
  },
} as const

/** Connections that wait for a lock for a second at most. */
const impatient = {
  postgres: (connection: ServerConnection, done: Done) =>
    connection.query("set lock_timeout = '200ms'", (error) => done(error, connection)),
  mariadb: (connection: ServerConnection, done: Done) =>
    connection.query('set innodb_lock_wait_timeout = 1', (error) => done(error, connection)),
}

type Done = (error: unknown, connection: unknown) => void
interface ServerConnection {
  query(sql: string, done: (error: unknown) => void): unknown
}

describe.each(['postgres', 'mariadb'] as const)('%s in trouble', (name) => {
  const server = reachable.find((candidate) => candidate.name === name)
  if (!server) return test.skip(`${name} is not reachable`)
  const { open } = server

  async function opened(pool?: Knex.PoolConfig) {
    const database = await open(pool ? { pool } : {})
    return { database, ...(await begun(database)) }
  }

  test('C23: of two units in a deadlock both succeed in the end: the loser is run again from the start', async () => {
    const { store } = await opened()
    const [one, two] = [await store.users.insert(newUser()), await store.users.insert(newUser())]
    const bothHold = meeting(2)
    let runs = 0
    const lockBoth = (first: string, second: string) =>
      store.transaction(async (inside) => {
        runs++
        await inside.users.lock(first)
        await bothHold()
        await inside.users.lock(second)
        await inside.users.update(second, { name: `after ${first}` })
      })
    await Promise.all([lockBoth(one.id, two.id), lockBoth(two.id, one.id)])
    expect(runs).toBe(3)
    expect((await store.users.find(one.id))?.name).toBe(`after ${two.id}`)
    expect((await store.users.find(two.id))?.name).toBe(`after ${one.id}`)
  })

  if (name === 'mariadb')
    test('a refresh changes the row by its key: by its token, two refreshes could deadlock', async () => {
      const { database, store } = await opened()
      const updates: { sql: string; bindings: Knex.RawBinding[] }[] = []
      database.knex.on('query', (query) => void (query.sql.startsWith('update') && updates.push(query)))
      const { id } = await store.users.insert(newUser())
      const sessions = Array.from({ length: 40 }, () => newSession(id)) // a table of one row is read as a whole
      for (const session of sessions) await store.sessions.insert(session)
      await store.sessions.rotate(rotationOf(String(sessions[20]?.tokenHash)))
      const [update] = updates
      const [plan] = await database.knex.raw(`explain ${update?.sql}`, update?.bindings ?? [])
      expect(plan.map(({ key }: { key: string }) => key)).toEqual(['PRIMARY'])
    })

  test('C23: a unit that waits for a lock waits once, and is a 503', async () => {
    const { database } = await opened()
    const store = createKnexStore({ knex: database.connect({ min: 0, max: 1, afterCreate: impatient[name] }) })
    const { id } = await store.users.insert(newUser())
    const other = await database.knex.transaction()
    await other('auth_users').where({ id }).update({ name: 'first' })
    let runs = 0
    const unit = store.transaction((inside) => {
      runs++
      return inside.users.update(id, { name: 'second' })
    })
    await expect(unit).rejects.toBeInstanceOf(ServiceUnavailableError)
    expect(runs).toBe(1)
    await other.rollback()
  })

  test("in the host's transaction a conflict is not repeated", async () => {
    const { store, database } = await opened()
    const { id } = await store.users.insert(newUser())
    let runs = 0
    const other = await database.knex.transaction()
    await other('auth_users').where({ id }).update({ name: 'first' })
    const trx = await database.knex.transaction()
    await trx.raw(name === 'postgres' ? "set local lock_timeout = '10ms'" : 'set innodb_lock_wait_timeout = 1')
    const unit = store.using(trx).transaction((inside) => {
      runs++
      return inside.users.update(id, { name: 'second' })
    })
    await expect(unit).rejects.toBeInstanceOf(ServiceUnavailableError)
    expect(runs).toBe(1)
    await trx.rollback()
    await other.rollback()
  })

  test('a connection cut in the middle of a unit is a 503 without the bound values, and leaves nothing', async () => {
    const { store, database } = await opened()
    const email = 'canary-77aa@example.test'
    const error = await store
      .transaction(async (inside) => {
        await inside.users.insert(newUser({ email }))
        await CUT[name](database)
        await inside.users.findByEmail(email)
      })
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ServiceUnavailableError)
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('canary')
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('F07: a full pool is a 503', async () => {
    const { database } = await opened()
    const small = knex({ ...database.config, pool: { min: 0, max: 1 }, acquireConnectionTimeout: 100, log: { warn() {} } })
    cleanUps.push(() => small.destroy())
    const store = createKnexStore({ knex: small })
    const held = await vi.waitFor(() => small.transaction(), { timeout: 10_000 }) // the first opens a connection, which may take longer
    await expect(store.users.find('00000000-0000-4000-8000-000000000000')).rejects.toBeInstanceOf(ServiceUnavailableError)
    await expect(store.transaction(async () => 1)).rejects.toBeInstanceOf(ServiceUnavailableError)
    await held.rollback()
  })
})

test.each(['pg', 'mysql2'])('a database that nobody listens for is a 503, for a verb and for a unit (%s)', async (client) => {
  const nowhere = knex({ client, connection: { host: '127.0.0.1', port: 1, user: 'x', database: 'x' }, log: { warn() {} } })
  cleanUps.push(() => nowhere.destroy())
  const store = createKnexStore({ knex: nowhere })
  await expect(store.users.findByEmail('a@example.test')).rejects.toBeInstanceOf(ServiceUnavailableError)
  await expect(store.transaction(async () => 1)).rejects.toBeInstanceOf(ServiceUnavailableError)
})

test('an error names the missing tables and the remedy', async () => {
  for (const database of reachable) {
    const { knex: empty, close } = await database.open()
    cleanUps.push(close)
    await expect(createKnexStore({ knex: empty }).users.findByEmail('a@example.test')).rejects.toThrow(
      /users\.findByEmail.*createAuthTables/,
    )
  }
})

test('a client the store was not tested with is refused at construction, in a sentence that says what to do', () => {
  class Oracle extends knex.Client {}
  Object.assign(Oracle.prototype, { dialect: 'oracle', driverName: 'oracledb', _driver: () => ({}) })
  const oracle = knex({ client: Oracle })
  cleanUps.push(() => oracle.destroy())
  expect(() => createKnexStore({ knex: oracle })).toThrow(ConfigurationError)
  expect(() => createKnexStore({ knex: oracle })).toThrow(/"oracledb".*'pg', 'mysql2' or 'better-sqlite3'/)
  // @ts-expect-error a caller without types
  expect(() => createKnexStore({ knex: {} })).toThrow(/needs `knex`/)
})

test('a transaction in the place of the pool is refused', async () => {
  if (!sqlite) throw new Error('SQLite is always there')
  const { knex: pool, close } = await sqlite.open({ memory: true })
  cleanUps.push(close)
  await pool.transaction(async (trx) => expect(() => createKnexStore({ knex: trx })).toThrow(/store\.using\(trx\)/))
})

function fileOf({ config }: OpenDatabase): string {
  const connection = config?.connection
  if (typeof connection === 'object' && 'filename' in connection) return connection.filename
  throw new Error('not a SQLite file')
}

/** Resolves for everybody once `size` have come. Later comers pass. */
function meeting(size: number): () => Promise<void> {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  let present = 0
  return () => {
    if (++present >= size) open()
    return gate
  }
}
