import type { Knex } from 'knex'
import type { Dialect } from './dialect'
import { translateDriverError } from './driver-errors'

/** How long a connection may leave us without an answer before it is closed. */
const answerMs = 1_000

/**
 * Runs `work` in a transaction of its own, on a connection of the host's pool: commits what it did, rolls back where it failed.
 *
 * @param isWaiting asked where `work` failed: may the connection be without an answer?
 * @throws what `work` threw; a translated driver error where the database refused to begin or to commit
 */
export async function inTransaction<T>(
  knex: Knex,
  dialect: Dialect,
  work: (trx: Knex.Transaction) => Promise<T>,
  isWaiting: () => boolean,
): Promise<T> {
  const failures: unknown[] = [] // Knex rejects with the error of its ROLLBACK, if there is one
  const send = async (trx: Knex.Transaction, statements: readonly string[]) => {
    for (const statement of statements)
      await trx.raw(statement).catch((error: unknown) => {
        failures.push(translateDriverError('transaction', error))
        throw error
      })
  }
  const container = async (trx: Knex.Transaction) => {
    if (trx.isCompleted()) throw new Error('Knex calls this also where BEGIN failed, and has that error already')
    await send(trx, dialect.afterBegin)
    const result = await work(trx).catch(async (error: unknown) => {
      failures.push(error)
      if (isWaiting()) await dropUnlessAnswering(trx)
      throw error
    })
    await send(trx, dialect.beforeCommit)
    return result
  }
  try {
    // Else Knex takes a rejection without a reason for a success.
    return await knex.transaction(container, { ...dialect.transaction, doNotRejectOnRollback: false })
  } catch (error) {
    throw failures.length > 0 ? failures[0] : translateDriverError('transaction', error)
  }
}

/** Behind a statement that hangs, ROLLBACK would hang too. Knex closes a connection on which a statement ran out of time. */
async function dropUnlessAnswering(trx: Knex.Transaction): Promise<void> {
  await trx
    .raw('select 1')
    .timeout(answerMs)
    .catch(() => undefined) // also where PostgreSQL refuses every statement of a failed transaction
}
