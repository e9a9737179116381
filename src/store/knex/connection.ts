import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import { isConflict, translateDriverError } from './driver-errors'
import type { Queryable } from './queryable'
import { beginUnit } from './units'

/** Where the verbs of a store run: on the host's pool, or inside one transaction. */
export interface Connection {
  readonly dialect: Dialect
  /** One statement. `verb` names it in errors. */
  statement<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** `updateReturning`: one statement, or, where there is no RETURNING, two that belong together. */
  guarded<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** Statements that belong together: a transaction of their own, or part of the one that is open. */
  together<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** The same for statements each of which decides on rows that it locks: right at any isolation level, so none is asked for. */
  lockedTogether<T>(verb: string, run: (db: Queryable) => PromiseLike<T>): Promise<T>
  /** A unit of work. Joins the one that is open. */
  unit<T>(work: (connection: Connection) => Promise<T>): Promise<T>
  /** A verb of several statements of which each is right by itself, but which must not be left in between. */
  whole<T>(verb: string, work: () => Promise<T>): Promise<T>
}

/** Each verb by itself. Whatever lost to a conflict is run again, a unit from its very start. */
export function poolConnection(knex: Knex, dialect: Dialect): Connection {
  const connection: Connection = {
    dialect,
    statement: (verb, run) => repeatAfterConflict(() => translating(verb, () => run(knex))),
    guarded: (verb, run) => (dialect.returning ? connection.statement(verb, run) : connection.together(verb, run)),
    together: (verb, run) => connection.unit((inside) => inside.statement(verb, run)),
    lockedTogether: (verb, run) =>
      repeatAfterConflict(() => newUnit(knex, dialect, (inside) => inside.statement(verb, run), { atAnyLevel: true })),
    unit: (work) => repeatAfterConflict(() => newUnit(knex, dialect, work)),
    whole: (_verb, work) => work(),
  }
  return connection
}

interface InTransaction {
  /** Throws where the transaction is over, and a statement would be in none. */
  readonly refuse?: () => void
  /** What failed in it, for its owner. */
  readonly failures?: Error[]
  /** Verbs under way, with their names. */
  readonly begun?: Map<Promise<unknown>, string>
}

/** Inside a transaction nothing is repeated: only its owner can run it again. */
export function transactionConnection(db: Queryable, dialect: Dialect, { refuse, failures, begun }: InTransaction = {}): Connection {
  const sent: Connection['statement'] = (verb, run) =>
    translating(
      verb,
      () => {
        refuse?.()
        return run(db)
      },
      failures,
    )
  const whole: Connection['whole'] = (verb, work) => kept(begun, verb, work())
  const statement: Connection['statement'] = (verb, run) => kept(begun, verb, sent(verb, run))
  const connection: Connection = {
    dialect,
    statement,
    guarded: statement,
    together: statement,
    lockedTogether: statement,
    unit: (work) => whole('transaction', async () => work(connection)), // a host in JavaScript may return no promise
    whole,
  }
  return connection
}

async function newUnit<T>(
  knex: Knex,
  dialect: Dialect,
  work: (connection: Connection) => Promise<T>,
  { atAnyLevel }: { atAnyLevel: boolean } = { atAnyLevel: false },
): Promise<T> {
  const unit = await translating('transaction', () => beginUnit(knex, dialect, { atAnyLevel }))
  const failures: Error[] = []
  const begun = new Map<Promise<unknown>, string>()
  let result: T
  try {
    result = await work(transactionConnection(unit.db, dialect, { failures, begun }))
    const [unended] = begun.values()
    if (unended) throw new Error(`A unit of work ended before its ${unended} did: wait for each verb`) // or half of one is kept
    // PostgreSQL answers the COMMIT of a failed transaction with a silent ROLLBACK: a failure that `work` caught must not
    // look like a success.
    if (failures[0]) throw failures[0]
  } catch (error) {
    await unit.rollBack()
    throw failures.find(isConflict) ?? error
  }
  try {
    await translating('transaction', () => unit.commit())
  } catch (error) {
    throw [error, ...failures].find(isConflict) ?? error
  }
  return result
}

/** Among those under way until it is settled, which it is before whoever waits for it goes on. */
function kept<T>(begun: Map<Promise<unknown>, string> | undefined, verb: string, work: Promise<T>): Promise<T> {
  if (!begun) return work
  begun.set(work, verb)
  const forget = () => begun.delete(work)
  work.then(forget, forget)
  return work
}

async function translating<T>(verb: string, run: () => PromiseLike<T>, failures: Error[] = []): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const translated = translateDriverError(verb, error)
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
