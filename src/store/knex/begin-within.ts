import type { Close } from './dialect'

/** Above the deadline, so that the deadline comes first and decides the answer. */
const aboveDeadlineMs = 50

/** PostgreSQL keeps the duration in four bytes. */
const largest = 2 ** 31 - 1

/** What the session's own `statement_timeout` was when a transaction began on the connection. */
const usualMs = new WeakMap<object, number>()

/**
 * Makes Knex begin a transaction in which PostgreSQL ends each statement, also one that waits for a lock, soon after the deadline. A lower
 * `statement_timeout` of the host stays, and the host's value comes back at the end of the transaction. Knex has no option for the text of
 * BEGIN, but calls `begin` as soon as it has a connection.
 *
 * @returns null if this Knex has no such method, and then sends BEGIN alone
 */
export function beginWithin(transaction: object, deadline: Deadline): Close | null {
  const knexs = transaction as KnexTransaction // Knex's types call it a promise
  const begin = knexs.begin?.bind(transaction)
  if (!begin) return null
  let used: PgConnection | null = null
  knexs.begin = (connection) => {
    used = connection
    const deadlineMs = deadline.remainingMs()
    return deadlineMs === null ? begin(connection) : beginLimited(knexs, connection, deadlineMs)
  }
  return async () => used?.end() // the driver does not wait for a statement that is under way
}

interface Deadline {
  /** Null: there is none. */
  remainingMs(): number | null
}

interface KnexTransaction {
  begin?(connection: PgConnection): Promise<unknown>
  /** Rejects the whole transaction, and answers nothing, where PostgreSQL refuses the statement. */
  query(connection: PgConnection, sql: string): Promise<unknown>
}

/** A client of `pg`. */
interface PgConnection {
  query(sql: string): Promise<unknown>
  end(): Promise<void>
}

/** Needs no round trip more than BEGIN alone, unless the host's value has changed. */
async function beginLimited(transaction: KnexTransaction, connection: PgConnection, deadlineMs: number): Promise<void> {
  const send = async (sql: string) => {
    const answer = await transaction.query(connection, sql)
    if (!answer) connection.query('ROLLBACK').catch(() => undefined) // PostgreSQL may have begun, and the next user of the connection must not be inside
    return answer
  }
  const most = Math.min(deadlineMs + aboveDeadlineMs, largest)
  const expected = usualMs.get(connection) ?? 0
  const answer = await send(
    `BEGIN TRANSACTION ISOLATION LEVEL read committed; SHOW statement_timeout; SET LOCAL statement_timeout = ${lower(expected, most)}`,
  )
  const usual = shown(answer)
  if (!answer || usual === expected) return
  usualMs.set(connection, usual)
  await send(`SET LOCAL statement_timeout = ${lower(usual, most)}`)
}

/** Zero means no limit. */
function lower(usual: number, most: number): number {
  return usual === 0 ? most : Math.min(usual, most)
}

const units: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['min', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** The driver answers several statements with a list of results. PostgreSQL shows a duration as an integer and its unit, as in `90s`. */
function shown(answer: unknown): number {
  const { response } = Object(answer) as { response?: readonly { rows?: readonly { statement_timeout?: unknown }[] }[] }
  const [, number, unit] = /^(\d+)(\w+)$/.exec(String(response?.[1]?.rows?.[0]?.statement_timeout)) ?? []
  return Number(number ?? 0) * (units.get(unit ?? '') ?? 0)
}
