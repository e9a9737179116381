import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import { translateDriverError } from './driver-errors'
import type { Queryable } from './queryable'

/** How long a connection may stay silent before the store closes the connection. */
const answerMs = 1_000

/**
 * Runs `work` in a new transaction on a connection of the host's pool. Commits if `work` succeeds, and rolls back if `work` fails.
 *
 * @param isWaiting called when `work` failed: returns true if the connection may still be waiting for a response of the database
 * @throws the error of `work`; a translated driver error if the database refused to begin or to commit
 */
export async function inTransaction<T>(
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
export async function sendAll(db: Queryable, statements: readonly string[], failures: unknown[] = []): Promise<void> {
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
