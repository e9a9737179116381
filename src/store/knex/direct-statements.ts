import type { Knex } from 'knex'
import type { Queryable } from './queryable'

/**
 * Sends a statement outside of a transaction to the driver, without Knex, which needs longer for it than some databases. Answers as Knex
 * does for SQL text. A statement with a name is prepared once for each connection.
 */
export type SendDirectly = (text: string, values: readonly unknown[], name?: string) => Promise<unknown>

const senders = new WeakMap<object, { knex: Knex; send: SendDirectly }>()

/** Makes the compiled statements of a Knex of `knexOn` go to the driver. */
export function sendDirectly(knex: Knex, send: SendDirectly): Knex {
  const inOrder: SendDirectly = async (...statement) => {
    await null // Knex asks for the connection of a transaction a moment later, and a transaction that began earlier comes first
    return send(...statement)
  }
  senders.set(knex.client, { knex, send: inOrder })
  return knex
}

/** Null: the statement goes through Knex, because it belongs to a transaction, or because the host listens to the events of Knex. */
export function senderOf({ client, isTransaction }: Queryable): SendDirectly | null {
  const found = isTransaction ? undefined : senders.get(client)
  return found && !isWatched(found.knex) ? found.send : null
}

const events = ['start', 'query', 'query-response', 'query-error'] as const

function isWatched(knex: Knex): boolean {
  return events.some((event) => knex.listenerCount(event) > 0)
}

interface PgError extends Error {
  readonly severity?: string
}

interface PgConnection {
  query(
    query: { name?: string; text: string; values: readonly unknown[] },
    callback: (error: PgError | null, result: unknown) => void,
  ): void
  /** `true` closes it. */
  release(isEnded?: boolean): void
}

export function directOnPg(connect: () => Promise<PgConnection>): SendDirectly {
  return async (text, values, name) => {
    const connection = await connect()
    let isEnded = false
    try {
      return await new Promise((resolve, reject) => {
        const query = name === undefined ? { text, values } : { name, text, values }
        connection.query(query, (error, result) => {
          isEnded = error?.severity === 'FATAL'
          if (error) reject(asOfKnex(error, text))
          else resolve(result)
        })
      })
    } finally {
      connection.release(isEnded) // at the answer of a server that ends the session, the pool still takes the connection for a good one
    }
  }
}

type MysqlQuery = (
  text: string,
  values: readonly unknown[],
  callback: (error: Error | null, rows: unknown, fields: unknown) => void,
) => void

interface MysqlConnection {
  readonly query: MysqlQuery
  /** Prepares the statement, once for each connection. */
  readonly execute: MysqlQuery
  release(): void
}

export function directOnMysql(acquire: () => Promise<MysqlConnection>): SendDirectly {
  return async (text, values, name) => {
    const connection = await acquire()
    try {
      return await new Promise((resolve, reject) => {
        const verb = name === undefined ? 'query' : 'execute'
        connection[verb](text, values, (error, rows, fields) => (error ? reject(asOfKnex(error, text)) : resolve([rows, fields])))
      })
    } finally {
      connection.release()
    }
  }
}

export interface SqliteStatement {
  readonly reader: boolean
  safeIntegers(isOn: boolean): unknown
  all(values: readonly unknown[]): unknown
  run(values: readonly unknown[]): unknown
}

/** An app with a store for each tenant may have many more than the usual ten. */
const mostStatements = 200

/** @param inTurn runs the work when no transaction is open on the handle */
export function directOnSqlite(handle: { prepare(text: string): unknown }, inTurn: <T>(work: () => T) => Promise<T>): SendDirectly {
  const prepared = new Map<string, SqliteStatement>()
  const statementOf = (text: string): SqliteStatement => {
    const known = prepared.get(text)
    if (known) return known
    const statement = handle.prepare(text) as SqliteStatement // the type of knexOn names only what it asks of the handle
    if (prepared.size < mostStatements) prepared.set(text, statement)
    return statement
  }
  return (text, values) =>
    inTurn(() => {
      try {
        const statement = statementOf(text)
        return statement.reader ? statement.all(values) : statement.run(values)
      } catch (error) {
        throw asOfKnex(error, text)
      }
    })
}

/** Knex writes the statement before the driver's message, and `tableAndColumnOf` reads what is after it. */
function asOfKnex(error: unknown, text: string): unknown {
  if (error instanceof Error) error.message = `${text} - ${error.message}`
  return error
}
