import type { Knex } from 'knex'
import { quietly } from '../../core/logger'
import type { Queryable, Row, Statement } from './queryable'

/** The prepared statements for the client of a host's knex. */
interface Preparing {
  /** True if this client must not use named prepared statements: the host turned them off, or a pooler lost a statement. */
  isOff: boolean
  readonly names: Set<string>
}

const preparing = new WeakMap<object, Preparing>()

/**
 * The maximum number of prepared statements. A connection keeps them until it closes. A store has about ten prepared statements, but a host
 * with a store for each tenant may have very many.
 */
const mostNames = 200

/** Turns prepared statements off. A host needs this if its connection pooler runs each statement on another connection. */
export function neverPrepare(knex: Knex): void {
  preparingOf(knex).isOff = true
}

/**
 * Sends a statement under its name, so that PostgreSQL parses and plans the statement once per connection. Parsing and planning take as
 * long as running the statement. In a transaction the statement has no name, because an error that the name causes would end the host's
 * transaction.
 */
export async function runPrepared(db: Queryable, { name, sql, bindings }: Statement): Promise<Row[]> {
  const plainly = async () => rowsOf(await db.raw(sql, bindings))
  if (!name || db.isTransaction || !mayPrepare(db, name)) return plainly()
  try {
    return rowsOf(await db.raw(sql, bindings).options({ name }))
  } catch (error) {
    const reason = reasons.get(codeOf(error))
    if (!reason) throw error
    const rows = await plainly()
    stopPreparing(db, reason) // the statement succeeded without its name, so the name caused the error
    return rows
  }
}

function preparingOf({ client }: Queryable): Preparing {
  const known = preparing.get(client) ?? { isOff: false, names: new Set() }
  preparing.set(client, known)
  return known
}

function mayPrepare(db: Queryable, name: string): boolean {
  const { isOff, names } = preparingOf(db)
  if (isOff) return false
  if (names.size < mostNames) names.add(name)
  return names.has(name)
}

/** Returns the rows of an answer. A host's `postProcessResponse` may already have extracted them. */
export function rowsOf(answer: Row[] | { rows: Row[] }): Row[] {
  return Array.isArray(answer) ? answer : answer.rows
}

/** Logs the reason once, even if several requests failed at the same time. */
function stopPreparing(db: Queryable, reason: string): void {
  const known = preparingOf(db)
  if (known.isOff) return
  known.isOff = true
  quietly(() => db.client.logger.warn(`doorward: ${reason} From now on this process prepares no statements; see docs/store.md.`))
}

const lost =
  'a prepared statement was lost between doorward and PostgreSQL. If a pooler in transaction mode is between them, set `preparedStatements: false` in createKnexStore().'

/** The error codes of a statement that PostgreSQL did not run because of its name (PostgreSQL manual, appendix A). */
const reasons: ReadonlyMap<unknown, string> = new Map([
  ['26000', lost], // the connection does not know the name
  ['42P05', lost], // the connection has another statement of this name
  ['0A000', 'a column of a prepared statement has changed its type.'],
])

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : null
}
