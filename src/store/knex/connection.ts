import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import { ServiceUnavailableError } from '../../errors'
import { inTime } from '../../in-time'
import type { UnitOptions } from '../auth-store'
import type { Dialect } from './dialect'
import { type Advise, isConflict, translateDriverError } from './driver-errors'
import type { Queryable } from './queryable'
import { inTransaction } from './units'

/** Where the verbs of a store run: on the host's pool, or inside one transaction. */
export interface Connection {
  readonly dialect: Dialect
  /** Absent: each verb runs on the pool. */
  readonly transaction?: Queryable
  /** One statement. `verb` names it in errors. */
  statement<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** `updateReturning`: one statement, or, where there is no RETURNING, two that belong together. */
  guarded<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** Statements that belong together: a transaction of their own, or part of the one that is open. */
  together<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** A unit of work. Joins the one that is open, and then has the deadline of that one. */
  unit<T>(work: (connection: Connection) => Promise<T>, options?: UnitOptions): Promise<T>
  /** A verb of several statements of which each is right by itself, but which must not be left in between. */
  whole<T>(verb: string, work: () => Promise<T>): Promise<T>
}

/**
 * Runs each verb by itself. What lost to a conflict is run again, a unit from its very start.
 *
 * @param advise what errors say beside the verb and the code
 */
export function poolConnection(knex: Knex, dialect: Dialect, advise?: Advise): Connection {
  const connection: Connection = {
    dialect,
    statement: (verb, run) => repeatAfterConflict(() => translating(verb, () => run(knex), { advise })),
    guarded: (verb, run) => (dialect.returning ? connection.statement(verb, run) : connection.together(verb, run)),
    together: (verb, run) => connection.unit((inside) => inside.statement(verb, run)),
    unit(work, { deadlineMs } = {}) {
      const abandoned = new AbortController()
      const progress: Progress = { isCommitting: false }
      const result = repeatAfterConflict(() => newUnit(knex, dialect, work, { abandoned: abandoned.signal, progress, advise }))
      return deadlineMs === undefined ? result : untilDeadline(result, deadlineMs, progress, () => abandoned.abort())
    },
    whole: (_verb, work) => work(),
  }
  return connection
}

interface InTransaction {
  readonly advise?: Advise | undefined
  /** Throws where the transaction is over, and a statement would be in none. */
  readonly refuse?: () => void
  /** What failed in it, for its owner. */
  readonly failures?: Error[]
  /** Verbs under way, with their names. */
  readonly begun?: Map<Promise<unknown>, string>
}

/**
 * Runs verbs inside a transaction, one after the other: InnoDB ends a transaction that lost to another, and a statement that was
 * sent already would be kept. Nothing is repeated, because only the owner of the transaction can run it again.
 */
export function transactionConnection(
  db: Queryable,
  dialect: Dialect,
  { advise, refuse, failures, begun }: InTransaction = {},
): Connection {
  let last: Promise<unknown> = Promise.resolve()
  const whole: Connection['whole'] = (verb, work) => kept(begun, verb, work())
  const statement: Connection['statement'] = (verb, run) => {
    const send = () => {
      refuse?.()
      return run(db)
    }
    const sent = last.then(() => translating(verb, send, { advise, failures }))
    last = sent.catch(() => undefined)
    return kept(begun, verb, sent)
  }
  const connection: Connection = {
    dialect,
    transaction: db,
    statement,
    guarded: statement,
    together: statement,
    unit: (work) => whole('transaction', async () => work(connection)), // a host in JavaScript may return no promise
    whole,
  }
  return connection
}

interface Progress {
  isCommitting: boolean
}

/** How long a COMMIT may take beyond the deadline. Past it nobody knows whether the work was kept. */
const commitMs = 5_000

/** What is being kept must not be called lost: its mails and events would be, and a signup could not be repeated. */
async function untilDeadline<T>(result: Promise<T>, deadlineMs: number, progress: Progress, abandon: () => void): Promise<T> {
  const late = new ServiceUnavailableError()
  try {
    return await inTime(result, deadlineMs, () => late)
  } catch (error) {
    if (error === late && progress.isCommitting) return inTime(result, commitMs, () => late)
    if (error === late) abandon()
    throw error
  }
}

async function newUnit<T>(
  knex: Knex,
  dialect: Dialect,
  work: (connection: Connection) => Promise<T>,
  { abandoned, progress, advise }: { abandoned: AbortSignal; progress: Progress; advise: Advise | undefined },
): Promise<T> {
  progress.isCommitting = false
  const failures: Error[] = []
  const begun = new Map<Promise<unknown>, string>()
  let isOver = false
  const refuse = () => {
    // Whatever failed, the database may have ended the transaction with it.
    if (isOver || failures.length > 0) throw new Error('The unit of work is over: a statement came too late')
  }
  const refused: unknown[] = []
  const whole = async (trx: Knex.Transaction) => {
    try {
      if (abandoned.aborted) throw new ServiceUnavailableError()
      trx.on('query-error', (error: unknown) => refused.push(error))
      const connection = transactionConnection(trx, dialect, { advise, refuse, failures, begun })
      const result = await Promise.race([work(connection), whenAborted(abandoned)])
      const [unended] = begun.values()
      if (unended) throw new Error(`A unit of work ended before its ${unended} did: wait for each verb`) // or half of one is kept
      // PostgreSQL answers the COMMIT of a failed transaction with a silent ROLLBACK: a failure that somebody caught must not
      // look like a success.
      if (failures[0]) throw failures[0]
      if (refused.length > 0) throw translateDriverError('transaction', refused[0])
      if (abandoned.aborted) throw new ServiceUnavailableError()
      progress.isCommitting = true
      return result
    } finally {
      isOver = true
    }
  }
  try {
    return await inTransaction(knex, dialect, whole, () => begun.size > 0 || abandoned.aborted)
  } catch (error) {
    throw [error, ...failures].find(isConflict) ?? error
  }
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new ServiceUnavailableError()), { once: true })
  })
}

/** Counts `work` among what is under way until it is settled, which it is before its caller goes on. */
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
      await delay(10 * attempts * (1 + Math.random())) // jitter, or the same two meet again
    }
  }
}
