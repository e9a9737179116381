import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import { ServiceUnavailableError } from '../../core/errors'
import { withTimeout } from '../../core/with-timeout'
import type { UnitOptions } from '../auth-store'
import type { Dialect } from './dialect'
import { type Advise, isConflict, translateDriverError } from './driver-errors'
import type { Queryable } from './queryable'

/** Runs the methods of a store: on the host's pool, or inside one transaction. */
export interface Connection {
  readonly dialect: Dialect
  /** The open transaction. Absent: each method runs on the pool. */
  readonly transaction?: Queryable
  /** Runs one statement. `verb` is the name of the method, for errors. */
  statement<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /**
   * Runs one guarded change. With RETURNING, the change is one statement, which must write. Without RETURNING, it is two statements (a
   * locking read and an UPDATE), which `guarded` runs in one transaction.
   */
  guarded<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** Runs several statements in one transaction. If a transaction is open, the statements join the open transaction. */
  together<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** Runs `work` in one transaction. If a transaction is open, `work` joins it. Then the deadline of the open transaction applies. */
  unit<T>(work: (connection: Connection) => Promise<T>, options?: UnitOptions): Promise<T>
  /**
   * Runs a method that sends several statements. Begins no transaction. If the store has an open transaction, that transaction must not end
   * before the method ends (`newUnit` throws).
   */
  whole<T>(verb: string, work: () => Promise<T>): Promise<T>
}

/**
 * Returns a connection that runs each method alone, on the pool. After a conflict, it runs the statement or the whole transaction again
 * from its start.
 *
 * @param advise returns the advice in errors, after the method's name and the error code
 */
export function poolConnection(knex: Knex, dialect: Dialect, advise?: Advise): Connection {
  const connection: Connection = {
    dialect,
    statement: (verb, run) => repeatAfterConflict(() => translating(verb, () => run(knex), { advise })),
    guarded: (verb, run) => (dialect.returning ? connection.statement(verb, run) : connection.together(verb, run)),
    together: (verb, run) => connection.unit((inside) => inside.statement(verb, run)),
    unit(work, { deadlineMs } = {}) {
      const progress = new Progress()
      const result = repeatAfterConflict(() => newUnit(knex, dialect, work, { progress, advise }))
      return deadlineMs === undefined ? result : untilDeadline(result, deadlineMs, progress)
    },
    whole: (_verb, work) => work(),
  }
  return connection
}

interface InTransaction {
  readonly advise?: Advise | undefined
  /** Throws if the transaction has ended, because the statement would then run outside of the transaction. */
  readonly refuse?: () => void
  /** The errors inside the transaction. The code that began the transaction reads them. */
  readonly failures?: Error[]
  /** The methods that are still running, with their names. */
  readonly begun?: Map<Promise<unknown>, string>
  /** Statements to send before the first statement, unless the first statement is a guarded change. */
  readonly beforeRead?: readonly string[]
}

/**
 * Returns a connection that runs methods inside a transaction, one after the other. The reason is that InnoDB ends a transaction that loses
 * a conflict. If the next statement were already on its way, InnoDB would commit this statement alone. After a conflict this connection
 * does not repeat anything, because only the owner of the transaction can run the transaction again.
 */
export function transactionConnection(
  db: Queryable,
  dialect: Dialect,
  { advise, refuse, failures, begun, beforeRead = [] }: InTransaction = {},
): Connection {
  let last: Promise<unknown> | null = null
  const whole: Connection['whole'] = (verb, work) => kept(begun, verb, work())
  const inTurn = <T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T> => {
    const send = () => {
      refuse?.()
      return run(db)
    }
    const sent = (last ?? Promise.resolve()).then(() => translating(verb, send, { advise, failures }))
    last = sent.catch(() => undefined)
    return kept(begun, verb, sent)
  }
  const statement: Connection['statement'] = (verb, run) => {
    const isFirst = last === null && beforeRead.length > 0
    return inTurn(verb, isFirst ? async (db) => sendAll(db, beforeRead, failures).then(() => run(db)) : run)
  }
  const connection: Connection = {
    dialect,
    transaction: db,
    statement,
    guarded: inTurn,
    together: statement,
    unit: (work) => whole('transaction', async () => work(connection)), // a host in JavaScript may return no promise
    whole,
  }
  return connection
}

/**
 * The state of a unit. The deadline and the attempts of the unit share it. `abandon` must be a method: V8 keeps a function that is assigned
 * to a property until the next collection of old objects, and with it everything that the function sees.
 */
class Progress {
  isCommitting = false
  /** True after the deadline. */
  isAbandoned = false
  /** Resolves when the unit is abandoned. An AbortController would cost each unit some 6 µs. */
  readonly abandoned: Promise<void>
  #resolve: () => void = () => undefined

  constructor() {
    this.abandoned = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  abandon(): void {
    this.isAbandoned = true
    this.#resolve()
  }
}

/** How long a COMMIT may take after the deadline. After that time, we do not know whether the database committed the work. */
const commitMs = 5_000

/**
 * Rejects at the deadline, but first waits for a COMMIT that has begun. Otherwise the call could reject although the database commits. The
 * mails and events of the work would then be lost, and the person could not repeat a sign-up.
 */
async function untilDeadline<T>(result: Promise<T>, deadlineMs: number, progress: Progress): Promise<T> {
  let isLate = false
  const late = () => {
    isLate = true
    return new ServiceUnavailableError()
  }
  try {
    return await withTimeout(result, deadlineMs, late)
  } catch (error) {
    if (isLate && progress.isCommitting) return withTimeout(result, commitMs, late)
    if (isLate) progress.abandon()
    throw error
  }
}

async function newUnit<T>(
  knex: Knex,
  dialect: Dialect,
  work: (connection: Connection) => Promise<T>,
  { progress, advise }: { progress: Progress; advise: Advise | undefined },
): Promise<T> {
  progress.isCommitting = false
  const failures: Error[] = []
  const begun = new Map<Promise<unknown>, string>()
  let isOver = false
  const refuse = () => {
    // After any failure, the database may have ended the transaction.
    if (isOver || failures.length > 0) throw new Error('The transaction has ended, and a statement came too late')
  }
  const whole = async (trx: Knex.Transaction) => {
    try {
      if (progress.isAbandoned) throw new ServiceUnavailableError()
      const refused = refusalsIn(trx)
      const connection = transactionConnection(trx, dialect, { advise, refuse, failures, begun, beforeRead: dialect.beforeRead })
      const result = await Promise.race([work(connection), progress.abandoned.then(refuseLate)])
      const [unended] = begun.values()
      if (unended) throw new Error(`The transaction ended before ${unended} did: await every method of the store`) // else the database could commit half of the method
      // PostgreSQL answers the COMMIT of a failed transaction with a silent ROLLBACK. So the call rejects after a failure, even if `work`
      // caught the error.
      if (failures[0]) throw failures[0]
      if (refused.length > 0) throw translateDriverError('transaction', refused[0])
      if (progress.isAbandoned) throw new ServiceUnavailableError()
      progress.isCommitting = true
      return result
    } finally {
      isOver = true
    }
  }
  try {
    return await inTransaction(knex, dialect, whole, () => begun.size > 0 || progress.isAbandoned)
  } catch (error) {
    throw [error, ...failures].find(isConflict) ?? error
  }
}

/**
 * Returns a list that receives the errors of all statements in the transaction. The listener must not see the work of the unit: V8 keeps
 * Knex's transaction objects after their end, until the next collection of old objects, and with them everything that their listeners see.
 */
function refusalsIn(trx: Knex.Transaction): readonly unknown[] {
  const refused: unknown[] = []
  trx.on('query-error', (error: unknown) => refused.push(error))
  return refused
}

function refuseLate(): never {
  throw new ServiceUnavailableError()
}

/** Lists `work` as running until `work` settles. Removes `work` from the list before the caller continues. */
function kept<T>(begun: Map<Promise<unknown>, string> | undefined, verb: string, work: Promise<T>): Promise<T> {
  if (!begun) return work
  begun.set(work, verb)
  const forget = () => begun.delete(work)
  work.then(forget, forget)
  return work
}

async function translating<T>(
  verb: string,
  run: () => PromiseLike<T>,
  { advise, failures = [] }: Pick<InTransaction, 'advise'> & { failures?: Error[] | undefined },
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const translated = translateDriverError(verb, error, advise)
    if (translated !== error) failures.push(translated)
    throw translated
  }
}

const ATTEMPTS = 3

async function repeatAfterConflict<T>(attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt()
    } catch (error) {
      if (attempts === ATTEMPTS || !isConflict(error)) throw error
      await delay(10 * attempts * (1 + Math.random())) // a random delay, so that the two transactions do not collide again
    }
  }
}

/** How long a connection may stay silent before the store closes the connection. */
const answerMs = 1_000

/**
 * Runs `work` in a new transaction on a connection of the host's pool. Commits if `work` succeeds, and rolls back if `work` fails.
 *
 * @param isWaiting called when `work` failed: returns true if the connection may still be waiting for a response of the database
 * @throws the error of `work`; a translated driver error if the database refused to begin or to commit
 */
async function inTransaction<T>(
  knex: Knex,
  dialect: Dialect,
  work: (trx: Knex.Transaction) => Promise<T>,
  isWaiting: () => boolean,
): Promise<T> {
  const failures: unknown[] = [] // kept here, because Knex rejects with another error if ROLLBACK fails too
  let result: T | undefined // not given to Knex: its transaction object would keep it until the next collection of old objects
  const container = async (trx: Knex.Transaction) => {
    if (trx.isCompleted()) throw new Error('Knex calls this also where BEGIN failed, and has that error already')
    result = await work(trx).catch(async (error: unknown) => {
      failures.push(error)
      if (isWaiting()) await dropUnlessAnswering(trx)
      throw error
    })
    await sendAll(trx, dialect.beforeCommit, failures)
  }
  try {
    // Without `doNotRejectOnRollback: false`, Knex treats a rejection without a reason as a success.
    await knex.transaction(container, { ...dialect.transaction, doNotRejectOnRollback: false })
    return result as T
  } catch (error) {
    throw failures.length > 0 ? failures[0] : translateDriverError('transaction', error)
  }
}

/**
 * Sends statements that begin or end a transaction. Every failure ends the unit, also an unknown one, because the database may then be
 * outside of a transaction.
 */
async function sendAll(db: Queryable, statements: readonly string[], failures: unknown[] = []): Promise<void> {
  try {
    for (const sql of statements) await db.raw(sql)
  } catch (error) {
    failures.push(translateDriverError('transaction', error))
    throw error
  }
}

/**
 * Closes a connection that does not answer, because ROLLBACK would hang too. Sends a statement with a timeout: if the statement times
 * out, Knex closes the connection.
 */
async function dropUnlessAnswering(trx: Knex.Transaction): Promise<void> {
  await trx
    .raw('select 1')
    .timeout(answerMs)
    .catch(() => undefined) // PostgreSQL refuses every statement in a failed transaction. A refusal is an answer too.
}
