import type { Knex } from 'knex'
import { ConfigurationError, ServiceUnavailableError } from '../../core/errors'
import { withOwnMessage } from '../../core/logger'
import { withTimeout } from '../../core/with-timeout'
import type { AuthStore } from '../auth-store'
import { afterCommitOf, refuseEnded, runEffect, runEffects } from './after-commit'
import { checkRunner } from './check-runner'
import { type Connection, poolConnection } from './connection'
import type { Dialect } from './dialect'
import { type DriverConnection, driverConnection } from './driver-connection'
import type { Advise } from './driver-errors'
import { checkDialect, libraryTransactionOf, type SqlRunner } from './runners'

/** The store inside a transaction of another library. */
export interface JoinedStore<Store extends AuthStore = AuthStore> {
  /** For `service.using(store)`. After `committed()` and `rolledBack()` every call rejects. */
  readonly store: Store
  /** Call this after the commit: it sends the mails and emits the events. */
  committed(): void
  /** Call this in a `catch` inside the transaction, or after its rollback: from here on nothing is sent, no statement, mail or event. */
  rolledBack(): void
}

interface Joined extends Omit<JoinedStore, 'store'> {
  readonly connection: Connection
  afterCommit(effect: () => void): void
}

/** @throws ConfigurationError if the runner is for another database than the store */
export function joinTransaction(knex: Knex, runner: SqlRunner, { dialect, advise }: { dialect: Dialect; advise: Advise }): Joined {
  requireSameDatabase(runner, dialect)
  const driver = driverConnection(runner)
  const takeTurn = turnsOf(libraryTransactionOf(runner))
  const transaction = lazyTransaction(knex, runner, dialect, driver)
  let connection: Promise<Connection> | null = null
  let isEnded = false
  const end = (name: string) => {
    const ended = withOwnMessage(new Error(`store.join(): ${name} was called, so the transaction has ended; join the next one.`))
    if (isEnded) driver.refuse()
    isEnded = true
    driver.close(ended)
  }
  const begin = async () => {
    const trx = await takeTurn(transaction.begin)
    return poolConnection(trx, insideTransaction(dialect), advise, (attempt) => takeTurn(() => whole(trx, driver, attempt)))
  }
  return {
    connection: lateConnection(dialect, async () => {
      driver.refuse()
      connection ??= begin()
      return connection
    }),
    afterCommit(effect) {
      driver.refuse()
      transaction.afterCommit(effect)
    },
    committed() {
      end('committed()')
      transaction.runEffects()
    },
    rolledBack: () => end('rolledBack()'),
  }
}

function requireSameDatabase(runner: SqlRunner, { name }: Dialect): void {
  if (typeof runner?.run !== 'function')
    throw new ConfigurationError('store.join() needs a runner: kyselyRunner(), drizzleRunner(), prismaRunner() or an SqlRunner of yours.')
  checkDialect('store.join', runner.dialect)
  if (runner.dialect !== name)
    throw new ConfigurationError(
      `store.join(): the store is on ${name}, but the transaction is on ${runner.dialect}; join a transaction of the same database.`,
    )
}

/** The transaction as one of Knex, for which Knex sends nothing itself. It begins with the first statement. */
function lazyTransaction(knex: Knex, runner: SqlRunner, dialect: Dialect, driver: DriverConnection) {
  const early: (() => void)[] = []
  let transaction: Knex.Transaction | null = null
  const begin = async () => {
    driver.refuse()
    const trx = await knex.transaction({ connection: driver.connection })
    driver.open()
    await checkRunner(trx, dialect, runner)
    for (const effect of early) afterCommitOf(trx)(effect)
    transaction = trx
    return trx
  }
  return {
    begin,
    afterCommit: (effect: () => void) => void (transaction ? afterCommitOf(transaction)(effect) : early.push(effect)),
    runEffects() {
      if (transaction) runEffects(transaction)
      else for (const effect of early) runEffect(effect, knex)
    },
  }
}

/** The app has begun the transaction and ends it, so doorward sends nothing of either. */
function insideTransaction(dialect: Dialect): Dialect {
  return { ...dialect, beforeRead: [], beforeCommit: [] }
}

/** As long as `knexOn` waits for a connection. Without a limit, a call that waits for the transaction that contains it would wait for ever. */
const turnMs = 5_000

type TakeTurn = <T>(work: () => Promise<T>) => Promise<T>

/** By the object of the transaction, because an app may join one transaction twice. */
const turns = new WeakMap<object, TakeTurn>()

/** One method after the other: a statement of another method inside a savepoint would be lost with it. Nothing is repeated. */
function turnsOf(transaction: object): TakeTurn {
  let last: Promise<unknown> = Promise.resolve()
  const takeTurn: TakeTurn = (work) => {
    const done = withTimeout(last, turnMs, () => new ServiceUnavailableError()).then(work)
    last = Promise.allSettled([last, done])
    return done
  }
  const known = turns.get(transaction) ?? takeTurn
  turns.set(transaction, known)
  return known
}

/** When the method has ended, nothing of it may still be sent: the app ends the transaction, and the connection goes to another request. */
async function whole<T>(trx: Knex.Transaction, driver: DriverConnection, attempt: () => Promise<T>): Promise<T> {
  driver.refuse()
  refuseEnded(trx)
  try {
    return await attempt()
  } catch (error) {
    driver.refuse()
    throw error
  } finally {
    if (driver.isBusy()) driver.close(new ServiceUnavailableError())
  }
}

function lateConnection(dialect: Dialect, ready: () => Promise<Connection>): Connection {
  // A statement that fails ends a transaction of PostgreSQL, unless it is in a savepoint.
  const single = dialect.name === 'postgresql' ? 'together' : 'statement'
  return {
    dialect,
    statement: async (verb, run) => (await ready())[single](verb, run),
    guarded: async (verb, run) => (await ready()).together(verb, run),
    together: async (verb, run) => (await ready()).together(verb, run),
    unit: async (work, options) => (await ready()).unit(work, options),
    whole: (_verb, work) => work(),
  }
}
