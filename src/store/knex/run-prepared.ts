import type { Knex } from 'knex'
import type { Queryable, Row, Statement } from './queryable'

/** Of a host's knex, by its client. */
interface Preparing {
  /** True when this client must not use named prepared statements: the host turned them off, or a pooler lost one. */
  isOff: boolean
  readonly names: Set<string>
}

const preparing = new WeakMap<object, Preparing>()

/** A connection keeps each to its end. A store has some ten; a host with a store for each tenant may have any number of them. */
const mostNames = 200

/** For a host whose pooler gives each statement another connection, and who says so. */
export function neverPrepare(knex: Knex): void {
  preparingOf(knex).isOff = true
}

/**
 * Sends a statement under its name, so that PostgreSQL parses and plans it once per connection; else that takes it as long as running
 * it. A transaction sends it without: what is refused there costs the host the transaction, and cannot be sent again.
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
    stopPreparing(db, reason) // only now is it known that the name was to blame
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

/** A host's postProcessResponse may have taken the rows out already. */
export function rowsOf(answer: Row[] | { rows: Row[] }): Row[] {
  return Array.isArray(answer) ? answer : answer.rows
}

/** Said once, however many requests were under way. */
function stopPreparing(db: Queryable, reason: string): void {
  const known = preparingOf(db)
  if (known.isOff) return
  known.isOff = true
  db.client.logger.warn(`doorward: ${reason} From now on this process prepares none; see docs/store.md.`)
}

const lost =
  'a prepared statement was lost on its way to PostgreSQL (a pooler in transaction mode?); if it is one, set `preparedStatements: false` of createKnexStore().'

/** What PostgreSQL says when nothing of a statement was done because of its name (its manual, appendix A). */
const reasons: ReadonlyMap<unknown, string> = new Map([
  ['26000', lost], // the connection does not know it
  ['42P05', lost], // the connection knows another by it
  ['0A000', 'a column of a prepared statement has changed its type.'],
])

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : null
}
