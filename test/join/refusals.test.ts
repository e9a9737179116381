import { inspect } from 'node:util'
import Database from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { CompiledQuery, Kysely, SqliteDialect } from 'kysely'
import { createPool } from 'mysql2/promise'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  ConfigurationError,
  createAuthTables,
  createKnexStore,
  drizzleRunner,
  type KnexStore,
  knexOn,
  kyselyRunner,
  prismaRunner,
  type SqlRunner,
} from '../../src'
import { newUser } from '../store/contract'
import { databases, type OpenDatabase } from '../support/databases'
import { type Library, librariesOf, openLibrary } from './libraries'

const kysely = { isTransaction: true, withoutPlugins: () => ({ executeQuery: async () => ({ rows: [] }) }) }
const drizzle = { execute: async () => ({ rows: [] }), rollback() {} }
const prisma = { $queryRawUnsafe: async () => [], $executeRawUnsafe: async () => 0 }

describe('a runner is refused at once', () => {
  test.each([
    [
      'Kysely outside of a transaction',
      () => kyselyRunner({ ...kysely, isTransaction: false }, { dialect: 'sqlite', CompiledQuery }),
      /the `trx`/,
    ],
    ['Kysely without CompiledQuery', () => kyselyRunner(kysely, { dialect: 'sqlite' } as never), /import \{ CompiledQuery \}/],
    ['Drizzle outside of a transaction', () => drizzleRunner({ execute: drizzle.execute }, { dialect: 'mysql', sql }), /the `tx` that db/],
    ['Drizzle without sql', () => drizzleRunner(drizzle, { dialect: 'mysql' } as never), /import \{ sql \}/],
    ['Drizzle on SQLite', () => drizzleRunner(drizzle, { dialect: 'sqlite', sql }), /does not support SQLite/],
    [
      'Prisma outside of a transaction',
      () => prismaRunner({ ...prisma, $connect() {} } as never, { dialect: 'postgresql' }),
      /the `tx` that prisma/,
    ],
    ['Prisma on MariaDB', () => prismaRunner(prisma, { dialect: 'mysql' }), /supports PostgreSQL only, not mysql/],
    ['Prisma on SQLite', () => prismaRunner(prisma, { dialect: 'sqlite' }), /supports PostgreSQL only, not sqlite/],
    [
      'a database that doorward does not know',
      () => kyselyRunner(kysely, { dialect: 'mariadb' as never, CompiledQuery }),
      /MariaDB is mysql/,
    ],
    ['no transaction at all', () => kyselyRunner(undefined as never, { dialect: 'sqlite', CompiledQuery }), /needs a transaction/],
  ])('%s', (_what, make, sentence) => {
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(sentence)
  })
})

describe('an error inside an error of a library', () => {
  const driver = (code: string) => Object.assign(new Error('duplicate key value: ana@example.test'), { code })
  const ofPrisma = (cause: object) =>
    Object.assign(new Error('Raw query failed: ana@example.test'), { code: 'P2010', meta: { driverAdapterError: { cause } } })
  test.each([
    ['of the driver itself', driver('SQLITE_CONSTRAINT_UNIQUE'), { name: 'DuplicateRecordError' }],
    [
      'of Drizzle',
      new Error('Failed query: ana@example.test', { cause: driver('SQLITE_CONSTRAINT_UNIQUE') }),
      { name: 'DuplicateRecordError' },
    ],
    [
      'of two libraries',
      new Error('outer', { cause: new Error('inner', { cause: driver('SQLITE_BUSY') }) }),
      { code: 'SERVICE_UNAVAILABLE' },
    ],
    [
      'of Prisma',
      ofPrisma({ kind: 'UniqueConstraintViolation', originalCode: 'SQLITE_CONSTRAINT_UNIQUE', originalMessage: 'ana@example.test' }),
      { name: 'DuplicateRecordError' },
    ],
    [
      'of Prisma, that only has a code',
      ofPrisma({ kind: 'sqlite', code: 'SQLITE_BUSY', message: 'ana@example.test' }),
      { code: 'SERVICE_UNAVAILABLE' },
    ],
    [
      'of Prisma, whose time limit has ended the transaction',
      Object.assign(new Error('expired'), { code: 'P2028' }),
      { code: 'SERVICE_UNAVAILABLE' },
    ],
    ['that is no error', 'ana@example.test', { message: 'The database failed at users.insert (unknown)' }],
  ])('%s, is read as the error of the driver, and its text stays inside', async (_whose, thrown, expected) => {
    const own = knexOn(new Database(':memory:'))
    await createAuthTables(own)
    const failing: SqlRunner = {
      dialect: 'sqlite',
      async run(sql) {
        if (/^insert/.test(sql)) throw thrown
        if (/^pragma synchronous =/.test(sql)) throw new Error('inside a transaction')
        return { rows: [{ synchronous: 1, instant: 1615701599123, largest: '9007199254740993', flag: 1, words: '$1 ?' }], affected: null }
      },
    }
    const error = await createKnexStore({ knex: own })
      .join(failing)
      .store.users.insert(newUser())
      .then(
        () => expect.unreachable(),
        (failure) => failure,
      )
    expect(error).toMatchObject(expected)
    expect(inspect(error)).not.toContain('ana@example.test')
  })
})

const reachable = await databases()

describe.each(reachable)('store.join() on $name refuses', (database) => {
  let opened: OpenDatabase
  let app: Library
  let store: KnexStore
  beforeAll(async () => {
    opened = await database.open()
    if (!opened.config) throw new Error('the test shares a database')
    app = await openLibrary(librariesOf[database.name][0] ?? 'kysely', database.name, opened.config)
    await createAuthTables(app.knex)
    store = createKnexStore({ knex: app.knex })
  })
  afterAll(async () => {
    await app?.close()
    await opened?.close()
  })

  const dialect = ({ sqlite: 'sqlite', postgres: 'postgresql', mariadb: 'mysql' } as const)[database.name]

  test('a runner of another database, and what is no runner', () => {
    const other = dialect === 'sqlite' ? 'postgresql' : 'sqlite'
    expect(() => store.join(kyselyRunner(kysely, { dialect: other, CompiledQuery }))).toThrow(
      new ConfigurationError(
        `store.join(): the store is on ${dialect}, but the transaction is on ${other}; join a transaction of the same database.`,
      ),
    )
    expect(() => store.join({} as SqlRunner)).toThrow(/needs a runner/)
    expect(() => store.join(undefined as never)).toThrow(/needs a runner/)
  })

  test('a runner of the app that is in no transaction, before anything is written', async () => {
    const { runner, close } = await outside()
    const { email } = newUser()
    const inserted = store.join(runner).store.users.insert(newUser({ email }))
    await expect(inserted).rejects.toThrow(/the runner is not inside a transaction/)
    await expect(inserted).rejects.toThrow(ConfigurationError)
    expect(await store.users.findByEmail(email)).toBeNull()
    await close()
  })

  /** A runner as an app could write it, on a connection without a transaction. */
  async function outside(): Promise<{ runner: SqlRunner; close: () => unknown }> {
    const connection = opened.config?.connection
    if (dialect === 'sqlite') {
      const db = new Database((connection as { filename: string }).filename)
      return {
        runner: {
          dialect,
          async run(text, values, answer) {
            const statement = db.prepare(text)
            if (answer === 'rows' && statement.reader) return { rows: statement.all(values) as Record<string, unknown>[], affected: null }
            return { rows: [], affected: statement.run(values).changes }
          },
        },
        close: () => db.close(),
      }
    }
    if (dialect === 'postgresql') {
      const pool = new pg.Pool({ connectionString: String(connection), options: `-c search_path=${String(opened.config?.searchPath)}` })
      const run: SqlRunner['run'] = async (text, values) => {
        const { rows, rowCount } = await pool.query(text, [...values])
        return { rows, affected: rowCount }
      }
      return { runner: { dialect, run }, close: () => pool.end() }
    }
    const pool = createPool(connection as object)
    const run: SqlRunner['run'] = async (text, values) => {
      const [found] = await pool.query(text, [...values])
      return Array.isArray(found)
        ? { rows: found as Record<string, unknown>[], affected: null }
        : { rows: [], affected: found.affectedRows }
    }
    return { runner: { dialect, run }, close: () => pool.end() }
  }

  test.each([
    ['an instant', 'instant', '2021-03-14 01:59:59.123'],
    ['a number of 64 bits', 'largest', 9_007_199_254_740_992],
    ['a boolean', 'flag', 'perhaps'],
    ['a text with a placeholder', 'words', '$1 $2'],
  ])('a runner that changes %s', async (what, column, changed) => {
    const work = app.transact(async ({ runner }) => {
      const changing: SqlRunner = {
        dialect: runner.dialect,
        async run(...given) {
          const { rows, ...rest } = await runner.run(...given)
          return { ...rest, rows: rows.map((row) => (column in row ? { ...row, [column]: changed } : row)) }
        },
      }
      await store.join(changing).store.users.insert(newUser())
    })
    await expect(work).rejects.toThrow(ConfigurationError)
    await expect(work).rejects.toThrow(`${what} does not come back`)
  })

  if (dialect !== 'sqlite')
    test('a runner whose transaction is on another database than it says, as its first statement shows', async () => {
      const db = new Kysely({ dialect: new SqliteDialect({ database: new Database(':memory:') }) })
      const work = db
        .transaction()
        // A copy, because a kind of runner that another test of this process has used is not checked again.
        .execute((trx) => store.join({ ...kyselyRunner(trx, { dialect, CompiledQuery }) }).store.users.insert(newUser()))
      await expect(work).rejects.toThrow(ConfigurationError)
      await expect(work).rejects.toThrow(`cannot run a statement of ${dialect}`)
      await db.destroy()
    })

  test('a call that waits for the transaction which contains it, after five seconds', async () => {
    await app.transact(async ({ runner }) => {
      const joined = store.join(runner)
      const nested = joined.store.transaction(() => joined.store.users.insert(newUser()))
      await expect(nested).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
      await joined.store.users.insert(newUser())
    })
  }, 20_000)
})
