import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import { ServiceUnavailableError } from '../../core/errors'
import { withTimeout } from '../../core/with-timeout'
import type { UnitOptions } from '../auth-store'
import type { Close, Dialect } from './dialect'
import { type Advise, isConflict, translateDriverError } from './driver-errors'
import { runsPairs } from './knex-on'
import type { Queryable } from './queryable'
import { lostName, repeatWithoutNames, runNamedOn } from './statements'

export interface Connection {
  readonly dialect: Dialect
  readonly transaction?: Queryable
  /** `verb` is the name of the method, for errors. */
  statement<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** One guarded change. Without RETURNING, it runs a locking read and an UPDATE in one transaction. */
  guarded<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** Joins an open transaction. */
  together<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** Joins an open transaction. Then the deadline of the open transaction applies. */
  unit<T>(work: (connection: Connection) => Promise<T>, options?: UnitOptions): Promise<T>
  /** Begins no transaction. An open transaction must not end before the method ends (`newUnit` throws). */
  whole<T>(verb: string, work: () => Promise<T>): Promise<T>
}

/**
 * After a conflict, runs the statement or the whole transaction again. If `knex` is a transaction, each transaction is a savepoint in it.
 * @param advise returns the advice after the error code @param attempting runs the attempts
 */
export function poolConnection(knex: Knex, dialect: Dialect, advise?: Advise, attempting: Attempting = repeatAfterConflict): Connection {
  const named: Dialect | null = dialect.namesStatements && !knex.isTransaction ? { ...dialect, run: runNamedOn(knex) } : null
  const connection: Connection = {
    dialect,
    statement: (verb, run) => attempting(() => translating(verb, () => run(knex), { advise })),
    guarded: (verb, run) => (dialect.returning ? connection.statement(verb, run) : connection.together(verb, run)),
    together: (verb, run) => connection.unit((inside) => inside.statement(verb, run)),
    unit(work, { deadlineMs } = {}) {
      const progress = new Progress(deadlineMs)
      const attempt = (used: Dialect) => newUnit(knex, used, work, { progress, advise })
      if (knex.isTransaction) return attempting(() => untilRolledBack(() => attempt(dialect), progress))
      const result = attempting(() =>
        named
          ? repeatWithoutNames(
              knex,
              () => attempt(named),
              () => attempt(dialect),
            )
          : attempt(dialect),
      )
      return deadlineMs === undefined ? result : untilDeadline(result, deadlineMs, progress)
    },
    whole: (_verb, work) => work(),
  }
  return connection
}

interface InTransaction {
  readonly advise?: Advise | undefined
  /** The transaction has ended: a statement would run outside of it. */
  readonly refuse?: () => void
  readonly failures?: Error[]
  readonly begun?: Map<Promise<unknown>, string>
  readonly beforeRead?: readonly string[]
  readonly turn?: Turn
}

interface Turn {
  /** Settles when the connection has answered every statement that was sent on it. */
  last: Promise<unknown> | null
  isBusy: boolean
}

/** One method after the other: after a conflict, InnoDB commits the next statement alone. Only the owner can repeat the work. */
export function transactionConnection(
  db: Queryable,
  dialect: Dialect,
  { advise, refuse, failures, begun, beforeRead = [], turn = { last: null, isBusy: false } }: InTransaction = {},
): Connection {
  const whole: Connection['whole'] = (verb, work) => kept(begun, verb, work())
  const inTurn = <T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T> => {
    const send = async () => {
      refuse?.()
      turn.isBusy = true
      try {
        return await run(db)
      } finally {
        turn.isBusy = false
      }
    }
    const sent = (turn.last ?? Promise.resolve()).then(() => translating(verb, send, { advise, failures }))
    turn.last = sent.catch(() => undefined)
    return kept(begun, verb, sent)
  }
  const statement: Connection['statement'] = (verb, run) => {
    const isFirst = turn.last === null && beforeRead.length > 0
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

/** `abandon` must be a method: V8 keeps a function in a property, and everything it sees, until the old objects are collected. */
class Progress {
  isCommitting = false
  isAbandoned = false
  /** An AbortController would cost each unit some 6 µs. */
  readonly abandoned: Promise<void>
  readonly #deadline: number | null
  #resolve: () => void = () => undefined

  constructor(deadlineMs: number | undefined) {
    this.#deadline = deadlineMs === undefined ? null : performance.now() + deadlineMs
    this.abandoned = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  abandon(): void {
    this.isAbandoned = true
    this.#resolve()
  }

  /** Null: the transaction has no deadline. */
  remainingMs(): number | null {
    return this.#deadline === null ? null : Math.max(0, Math.ceil(this.#deadline - performance.now()))
  }
}

/** After this time, we do not know whether the database committed the work. */
const commitMs = 5_000

/** Waits for a COMMIT that has begun: a rejected call must not be committed, or its mails and events would be lost. */
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

/**
 * Inside a transaction of the app, a deadline rejects only after the savepoint has ended: the app ends its transaction then, and a later
 * statement would reach the connection of another request. `store.join` closes a connection that is still busy.
 */
async function untilRolledBack<T>(attempt: () => Promise<T>, progress: Progress): Promise<T> {
  const remainingMs = progress.remainingMs()
  if (remainingMs === null) return attempt()
  if (remainingMs === 0) throw new ServiceUnavailableError()
  const result = attempt()
  const late = setTimeout(() => progress.isCommitting || progress.abandon(), remainingMs).unref()
  return withTimeout(result, remainingMs + answerMs, () => new ServiceUnavailableError()).finally(() => clearTimeout(late))
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
  const turn: Turn = { last: null, isBusy: false }
  let isOver = false
  const refuse = () => {
    // After any failure, the database may have ended the transaction.
    if (isOver || failures.length > 0) throw new Error('The transaction has ended, and a statement came too late')
  }
  const whole = async (trx: Knex.Transaction) => {
    try {
      if (progress.isAbandoned) throw new ServiceUnavailableError()
      const refused = refusalsIn(trx)
      const connection = transactionConnection(trx, dialect, { advise, refuse, failures, begun, beforeRead: dialect.beforeRead, turn })
      const result = await Promise.race([work(connection), progress.abandoned.then(refuseLate)])
      const [unended] = begun.values()
      if (unended) throw new Error(`The transaction ended before ${unended} did: await every method of the store`) // else the database could commit half of the method
      // PostgreSQL answers the COMMIT of a failed transaction with a silent ROLLBACK, so a failure counts even if `work` caught it.
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
    return await inTransaction(knex, dialect, whole, { progress, turn, isWaiting: () => begun.size > 0 || progress.isAbandoned })
  } catch (error) {
    throw [error, ...failures].find((failure) => isConflict(failure) || lostName(failure)) ?? error
  }
}

/** V8 keeps Knex's transaction objects and what their listeners see for long, so the listener must not see the unit's work. */
function refusalsIn(trx: Knex.Transaction): readonly unknown[] {
  const refused: unknown[] = []
  trx.on('query-error', (error: unknown) => refused.push(error))
  return refused
}

function refuseLate(): never {
  throw new ServiceUnavailableError()
}

/** Removes `work` from the list before the caller continues. */
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

export type Attempting = <T>(attempt: () => Promise<T>) => Promise<T>

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

interface Transacting {
  readonly progress: Progress
  readonly turn: Turn
  /** Called when the work failed. True: the connection may still wait for an answer of the database. */
  isWaiting(): boolean
}

/** @throws the error of `work`; a translated driver error if the database refused to begin or to commit */
async function inTransaction<T>(
  knex: Knex,
  dialect: Dialect,
  work: (trx: Knex.Transaction) => Promise<T>,
  { progress, turn, isWaiting }: Transacting,
): Promise<T> {
  const failures: unknown[] = [] // kept here, because Knex rejects with another error if ROLLBACK fails too
  let close: Close | null | undefined
  let result: T | undefined // not given to Knex: its transaction object would keep it until the next collection of old objects
  const container = async (trx: Knex.Transaction) => {
    if (trx.isCompleted()) throw new Error('Knex calls this also where BEGIN failed, and has that error already')
    result = await work(trx).catch(async (error: unknown) => {
      failures.push(error)
      if (isWaiting() && !knex.isTransaction) await (close ? closeUnlessFree(trx, turn, close) : dropUnlessAnswering(trx))
      throw error
    })
    await sendAll(trx, dialect.beforeCommit, failures)
  }
  try {
    // Without `doNotRejectOnRollback: false`, Knex treats a rejection without a reason as a success.
    const transaction = knex.transaction(container, { ...dialect.transaction, doNotRejectOnRollback: false })
    close = knex.isTransaction ? null : dialect.beginWithin?.(transaction, progress)
    await transaction
    return result as T
  } catch (error) {
    throw failures.length > 0 ? failures[0] : translateDriverError('transaction', error)
  }
}

/** Every failure ends the unit, also an unknown one, because the database may then be outside of a transaction. */
async function sendAll(db: Queryable, statements: readonly string[], failures: unknown[] = []): Promise<void> {
  try {
    for (const sql of statements.length > 1 && runsPairs(db) ? [statements.join(' ')] : statements) await db.raw(sql)
  } catch (error) {
    failures.push(translateDriverError('transaction', error))
    throw error
  }
}

/** A pool must be free again 200 ms after a deadline. */
const freeMs = 150

/** ROLLBACK would wait behind a busy statement. The database ends a statement soon after the deadline, but may have begun it late. */
async function closeUnlessFree(trx: Knex.Transaction, turn: Turn, close: Close): Promise<void> {
  const answer = turn.isBusy ? turn.last : trx.raw('select 1').catch(() => undefined) // a refusal is an answer too
  await withTimeout(Promise.resolve(answer), freeMs, () => new ServiceUnavailableError()).catch(close)
}

const answerMs = 1_000

/** ROLLBACK would hang too. If a statement with a timeout times out, Knex closes the connection. */
async function dropUnlessAnswering(trx: Knex.Transaction): Promise<void> {
  await trx
    .raw('select 1')
    .timeout(answerMs)
    .catch(() => undefined) // PostgreSQL refuses every statement in a failed transaction. A refusal is an answer too.
}
