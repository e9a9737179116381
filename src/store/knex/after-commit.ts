import type { Knex } from 'knex'
import { ServiceUnavailableError } from '../../core/errors'
import { quietly } from '../../core/logger'
import { rolledBack } from './driver-errors'

/** After a failed statement PostgreSQL answers COMMIT with a silent ROLLBACK, unless a savepoint before the failure is rolled back to. */
type Entry = { kind: 'effect'; run: () => void } | { kind: 'savepoint'; name: string } | { kind: 'failure' }

const logs = new WeakMap<Knex.Transaction, Entry[]>()

const ended = new WeakSet<Entry[]>()

/** Watches the SQL: knex's promises also resolve after `trx.rollback()`, or at the RELEASE of a nested transaction. */
export function afterCommitOf(trx: Knex.Transaction): (effect: () => void) => void {
  const log = logOf(outermost(trx))
  return (run) => void log.push({ kind: 'effect', run })
}

/** Runs the effects of a transaction that another library has committed. */
export function runEffects(trx: Knex.Transaction): void {
  runAll(logOf(outermost(trx)), trx)
}

/** InnoDB would commit the next statement alone. @throws ServiceUnavailableError if the database ended the transaction after a conflict */
export function refuseEnded(trx: Knex.Transaction): void {
  if (ended.has(logOf(outermost(trx)))) throw new ServiceUnavailableError()
}

function outermost(trx: Knex.Transaction): Knex.Transaction {
  return trx.parentTransaction ? outermost(trx.parentTransaction) : trx
}

function logOf(trx: Knex.Transaction): Entry[] {
  const known = logs.get(trx)
  if (known) return known
  const log: Entry[] = []
  logs.set(trx, log)
  if (!trx.isCompleted()) follow(trx, log)
  return log
}

function follow(trx: Knex.Transaction, log: Entry[]): void {
  trx.on('query', ({ sql }: { sql: string }) => read(log, sql))
  trx.on('query-error', (error: object) => readFailure(log, error))
  trx.executionPromise.then(
    () => runAll(log, trx),
    () => log.splice(0),
  )
}

const SAVEPOINT = /^\s*savepoint\s+([^\s;]+)/i
const RELEASE = /^\s*release\s+(?:savepoint\s+)?([^\s;]+)/i
const ROLLBACK = /^\s*(?:rollback|abort)\b(?:.*\sto\s+(?:savepoint\s+)?([^\s;]+))?/i

function read(log: Entry[], sql: string): void {
  const [set, released, undone] = [SAVEPOINT, RELEASE, ROLLBACK].map((pattern) => pattern.exec(sql))
  if (set?.[1]) log.push({ kind: 'savepoint', name: set[1].toLowerCase() })
  const gone = released ? savepointIn(log, released[1]) : -1
  if (gone >= 0) log.splice(gone, 1)
  // `savepointIn` returns -1 for a full rollback and for a savepoint before the first effect. Then this line removes the whole log.
  if (undone) log.splice(savepointIn(log, undone[1]) + 1)
}

function savepointIn(log: readonly Entry[], name = ''): number {
  return log.findLastIndex((entry) => entry.kind === 'savepoint' && entry.name === name.toLowerCase())
}

function readFailure(log: Entry[], error: { code?: unknown; severity?: unknown }): void {
  if (rolledBack.has(error.code)) {
    log.splice(0)
    ended.add(log)
  }
  if (error.severity !== undefined) log.push({ kind: 'failure' }) // only errors from a PostgreSQL server have a severity
}

function runAll(log: Entry[], trx: Knex.Transaction): void {
  const entries = log.splice(0)
  if (entries.some(({ kind }) => kind === 'failure')) return
  for (const entry of entries) if (entry.kind === 'effect') runEffect(entry.run, trx)
}

// The host has committed, so a failed effect cannot undo anything. The process and the other effects must continue.
export function runEffect(effect: () => void, { client }: Pick<Knex, 'client'>): void {
  try {
    effect()
  } catch (error) {
    const name = error instanceof Error ? error.name : typeof error
    quietly(() => client.logger.error(`doorward: an effect after the commit failed (${name})`))
  }
}
