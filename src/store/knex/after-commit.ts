import type { Knex } from 'knex'
import { ServiceUnavailableError } from '../../errors'
import { rolledBack } from './driver-errors'

/**
 * What waits for the host's commit, between the savepoints it came after. A failed statement of PostgreSQL is in it too:
 * unless a rollback to a savepoint takes it back, the COMMIT is a silent ROLLBACK.
 */
type Entry = { kind: 'effect'; run: () => void } | { kind: 'savepoint'; name: string } | { kind: 'failure' }

const logs = new WeakMap<Knex.Transaction, Entry[]>()

/** Those that the database has ended by itself. */
const ended = new WeakSet<Entry[]>()

/**
 * Runs effects once the host has committed; never those that a rollback undid, be it of the whole transaction or to a
 * savepoint set before them. Read off the statements, since knex's promises resolve after `trx.rollback()` as they do after
 * `trx.commit()`, and a nested transaction's at its RELEASE already.
 */
export function afterCommitOf(trx: Knex.Transaction): (effect: () => void) => void {
  const log = logOf(outermost(trx))
  return (run) => void log.push({ kind: 'effect', run })
}

/**
 * InnoDB has rolled back all of it, and the next statement would be kept whatever the host does.
 * @throws ServiceUnavailableError
 */
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

/** Of the transaction's nested ones too, and what the host sends by `trx.raw`. */
function read(log: Entry[], sql: string): void {
  const [set, released, undone] = [SAVEPOINT, RELEASE, ROLLBACK].map((pattern) => pattern.exec(sql))
  if (set?.[1]) log.push({ kind: 'savepoint', name: set[1].toLowerCase() })
  const gone = released ? savepointIn(log, released[1]) : -1
  if (gone >= 0) log.splice(gone, 1)
  // -1, a savepoint from before the first effect or none at all, leaves nothing.
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
  if (error.severity !== undefined) log.push({ kind: 'failure' }) // PostgreSQL's own word: the server refused the statement
}

function runAll(log: Entry[], trx: Knex.Transaction): void {
  const entries = log.splice(0)
  if (entries.some(({ kind }) => kind === 'failure')) return
  for (const entry of entries) if (entry.kind === 'effect') runOne(entry.run, trx)
}

// The host has committed: what fails here can undo nothing, and must end neither the process nor the other effects.
function runOne(effect: () => void, trx: Knex.Transaction): void {
  try {
    effect()
  } catch (error) {
    trx.client.logger.error(`doorward: an effect after the commit failed (${error instanceof Error ? error.name : typeof error})`)
  }
}
