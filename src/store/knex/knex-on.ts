import type { Knex } from 'knex'
import { ConfigurationError, ServiceUnavailableError } from '../../core/errors'
import { withTimeout } from '../../core/with-timeout'
import { directOnMysql, directOnPg, directOnSqlite, type SqliteStatement, sendDirectly } from './direct-statements'
import type { Queryable } from './queryable'

/** A `Pool` of `pg`. */
export interface PgPool {
  connect(): Promise<unknown>
  end(): Promise<void>
  on(event: 'acquire', listener: (client: PgClient) => void): unknown
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
  readonly options?: { readonly max?: number | undefined }
}

interface PgClient {
  on(event: 'error', listener: () => void): unknown
}

/** A pool of `mysql2` or `mysql2/promise`. */
export interface MysqlPool {
  readonly getConnection: (...given: never[]) => unknown
  readonly end: (...given: never[]) => unknown
}

/** A database of `better-sqlite3`. */
export interface SqliteHandle {
  prepare(sql: string): unknown
  pragma(source: string): unknown
  exec(source: string): unknown
  readonly inTransaction: boolean
  readonly open: boolean
}

/**
 * Makes a Knex on the pool that the app has already: a `Pool` of `pg`, a pool of `mysql2` or `mysql2/promise`, or a database of
 * `better-sqlite3`. Everything of doorward that takes a Knex takes this one. It never closes the pool: `destroy()` only lets it go. Outside of
 * transactions, the store's most frequent statements go straight to the driver, unless you listen to an event of this Knex.
 *
 * Each acquire waits at most 5 seconds. On `better-sqlite3` there is one connection: doorward waits its turn, and answers 503 while a
 * transaction of the app is open. While a transaction of doorward is open, a statement of the app belongs to it and is lost if it rolls back.
 * The app must begin no asynchronous transaction on the handle.
 * @throws ConfigurationError for another pool, and for a Knex older than 3.3.0
 */
export function knexOn(pool: PgPool | MysqlPool | SqliteHandle): Knex {
  const { create, version } = knexPackage()
  if (!isNewEnough(version))
    throw new ConfigurationError(
      `knexOn() needs Knex 3.3.0 or newer, because older versions take no pool of the app. Installed: ${version}.`,
    )
  if (isPgPool(pool)) {
    surviveEndedSessions(pool)
    const limited = inTime(pool)
    const knex = create({ client: 'pg', connectionPool: limited, pool: { max: pool.options?.max ?? 10 }, log: { warn } })
    return sendDirectly(knex, directOnPg(limited.connect))
  }
  if (isSqliteHandle(pool)) {
    const queue = oneAtATime(pool)
    const knex = create({ client: 'better-sqlite3', connectionPool: queue, useNullAsDefault: true, log: { warn } })
    return sendDirectly(knex, queue.sendDirectly)
  }
  if (isMysqlPool(pool)) {
    const { acquire, ...limited } = callbacksInTime(pool)
    return sendDirectly(create({ client: 'mysql2', connectionPool: limited, log: { warn } }), directOnMysql(acquire))
  }
  throw new ConfigurationError(
    'knexOn() takes a Pool of pg, a pool of mysql2 (createPool) or mysql2/promise, or a Database of better-sqlite3. Pass that object itself, not its options.',
  )
}

/**
 * Makes a session that the server ends (a restart, pg_terminate_backend) fail its query, not the process: a client of `pg` emits `error`
 * also while it is checked out, and without a listener the process dies.
 */
export function surviveEndedSessions(pool: unknown): void {
  if (!isPgPool(pool) || survived.has(pool)) return
  survived.add(pool)
  const known = new WeakSet<PgClient>()
  pool.on('acquire', (client) => {
    if (known.has(client)) return
    known.add(client)
    client.on('error', () => undefined) // the query rejects with the same error, and the pool drops the client
  })
}

const survived = new WeakSet<object>()

/** `connectionPool` is not in the types of a Knex older than 3.3.0, with which everything but `knexOn` works. */
type ConfigOnPool = Knex.Config & { connectionPool: object }

function knexPackage(): { create: (config: ConfigOnPool) => Knex; version: string } {
  const { knex } = require('knex') as { knex: (config: ConfigOnPool) => Knex } // according to Knex's types
  const { version } = require('knex/package.json') as { version: string }
  return { create: knex, version }
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 3 || (major === 3 && minor >= 3)
}

function isPgPool(pool: unknown): pool is PgPool {
  const { connect, totalCount, on } = Object(pool) as Partial<PgPool>
  return typeof connect === 'function' && typeof on === 'function' && typeof totalCount === 'number'
}

/** Only the pools of mysql2 have `promise()`. Other packages with `getConnection` would never answer Knex, and their connections would be lost. */
function isMysqlPool(pool: unknown): pool is MysqlPool {
  const { getConnection, promise } = Object(withCallbacks(pool)) as { getConnection?: unknown; promise?: unknown }
  return typeof getConnection === 'function' && typeof promise === 'function'
}

/** A pool of `mysql2/promise` has the pool with callbacks as `pool`. */
function withCallbacks(pool: unknown): unknown {
  return (Object(pool) as { pool?: unknown }).pool ?? pool
}

function isSqliteHandle(pool: unknown): pool is SqliteHandle {
  const { prepare, pragma, inTransaction } = Object(pool) as Partial<SqliteHandle>
  return typeof prepare === 'function' && typeof pragma === 'function' && typeof inTransaction === 'boolean'
}

/** Knex's own warnings, without those about our 503. */
function warn(message: string): void {
  if (!message.startsWith('Acquire connection error')) console.warn(message)
}

const acquireMs = 5_000

/** Knex limits this time only for a pool of its own. Without a limit, nested uses of a full pool would wait for each other for ever. */
function withinTime<T>(acquired: Promise<T>, giveBack: (late: T) => void): Promise<T> {
  let isLate = false
  acquired.then(
    (connection) => isLate && giveBack(connection),
    () => undefined,
  )
  return withTimeout(acquired, acquireMs, () => {
    isLate = true
    return new ServiceUnavailableError()
  })
}

/** The pool for Knex, whose `connect` has a time limit. */
function inTime(pool: PgPool) {
  const connect = () => withinTime(pool.connect() as Promise<PooledClient>, (late) => late.release()) // as the pools of pg answer
  return {
    connect,
    end: () => pool.end(),
    get totalCount() {
      return pool.totalCount
    },
    get idleCount() {
      return pool.idleCount
    },
    get waitingCount() {
      return pool.waitingCount
    },
  }
}

type PooledClient = Awaited<ReturnType<Parameters<typeof directOnPg>[0]>>

type MysqlConnection = Awaited<ReturnType<Parameters<typeof directOnMysql>[0]>>

type Callback = (error: Error | null, connection?: MysqlConnection) => void

function callbacksInTime(pool: MysqlPool) {
  const inner = withCallbacks(pool) as { getConnection(callback: Callback): void; end(): void }
  const acquire = () => {
    const acquired = new Promise<MysqlConnection>((resolve, reject) => {
      inner.getConnection((error, connection) => (connection ? resolve(connection) : reject(error)))
    })
    return withinTime(acquired, (late) => late.release())
  }
  return {
    acquire,
    getConnection(callback: Callback) {
      acquire().then(
        (connection) => callback(null, connection),
        (error: Error) => callback(error),
      )
    },
    end: () => inner.end(),
  }
}

/** One queue for each handle, because a second one would take the transactions of the first for the app's. */
const queues = new WeakMap<SqliteHandle, ReturnType<typeof queueOf>>()

function oneAtATime(handle: SqliteHandle) {
  const known = queues.get(handle) ?? queueOf(handle)
  queues.set(handle, known)
  pairing.add(known)
  return known
}

/** True: `COMMIT; BEGIN;` is one statement, so that no transaction of the app begins between the two. */
export function runsPairs({ client }: Queryable): boolean {
  return pairing.has(client.config.connectionPool)
}

const pairing = new WeakSet<object>()

const PAIR = /^COMMIT; BEGIN(?: IMMEDIATE)?;$/
const ENDS = /^\s*(?:commit|end|rollback(?!.*\bto\b))\b/i

/** The handle for one holder, which never ends a transaction of the app, nor writes in one. Knex runs a statement as soon as it is prepared. */
function viewOf(handle: SqliteHandle): SqliteHandle {
  let isOurs = false
  const running = <T>(run: () => T): T => {
    try {
      return run()
    } finally {
      isOurs = handle.inTransaction // SQLite itself rolls back after some errors
    }
  }
  const prepare = (sql: string) => {
    if (!isOurs && ENDS.test(sql)) return answering(() => undefined)
    if (!isOurs && handle.inTransaction) throw Object.assign(new Error('a transaction of the app is open'), { code: 'SQLITE_BUSY' })
    if (PAIR.test(sql)) return answering(() => running(() => handle.exec(sql)))
    const statement = handle.prepare(sql) as SqliteStatement // the type of knexOn names only what it asks of the handle
    return {
      reader: statement.reader,
      all: (values: readonly unknown[]) => running(() => statement.all(values)),
      run: (values: readonly unknown[]) => running(() => statement.run(values)),
      safeIntegers: (isOn: boolean) => statement.safeIntegers(isOn),
    }
  }
  return Object.assign(Object.create(handle) as SqliteHandle, { prepare })
}

function answering(send: () => unknown) {
  const run = () => {
    send()
    return { changes: 0, lastInsertRowid: 0 }
  }
  return { reader: false, run, safeIntegers: () => undefined }
}

/** A pool of the one handle, in the form of the pools that Knex uses itself. */
function queueOf(handle: SqliteHandle) {
  const waiting: (() => void)[] = []
  let isTaken = false
  let holder: SqliteHandle | null = null
  const pass = () => {
    holder = null
    const next = waiting.shift()
    if (next) next()
    else isTaken = false
  }
  /** An open transaction is the app's, and would keep or lose what doorward writes. */
  const refuseOpen = () => {
    if (!handle.inTransaction) return
    pass()
    throw new ServiceUnavailableError()
  }
  async function take(): Promise<SqliteHandle> {
    if (isTaken) await inTurn()
    isTaken = true
    refuseOpen()
    const view = viewOf(handle) // one for each holder, because Knex gives a connection back twice after a stream
    holder = view
    return view
  }
  function inTurn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(go), 1)
        reject(new ServiceUnavailableError())
      }, acquireMs)
      waiting.push(go)
    })
  }
  async function whenFree<T>(work: () => T): Promise<T> {
    if (isTaken) await inTurn()
    isTaken = true
    refuseOpen()
    try {
      return work()
    } finally {
      pass()
    }
  }
  return {
    sendDirectly: directOnSqlite(handle, whenFree),
    acquire: () => ({ promise: take() }),
    release(view: SqliteHandle) {
      if (view !== holder) return false
      pass()
      return true
    },
    destroy: async () => undefined, // the handle is the app's
    numFree: () => (isTaken ? 0 : 1),
    numUsed: () => (isTaken ? 1 : 0),
    numPendingAcquires: () => waiting.length,
  }
}
