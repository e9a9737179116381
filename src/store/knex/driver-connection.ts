import { ConfigurationError } from '../../core/errors'
import type { Row } from './queryable'
import type { SqlAnswer, SqlRunner, SqlValue } from './runners'

type Send = (sql: string, values: readonly unknown[] | undefined) => Promise<SqlAnswer>

export interface DriverConnection {
  /** For Knex. */
  readonly connection: object
  /** Ends the start, in which the BEGIN of Knex is answered and not sent. */
  open(): void
  /** From here on nothing is sent: the connection may be another request's. The first error stays. */
  close(error: Error): void
  /** @throws the error with which the connection was closed */
  refuse(): void
  /** A statement is not answered yet. */
  isBusy(): boolean
}

/**
 * A connection for Knex in the form of the driver's, which sends each statement through the runner. So Knex compiles the statements and
 * reads the answers as for its own connections.
 */
export function driverConnection(runner: SqlRunner): DriverConnection {
  let isOpen = false
  let closed: Error | null = null
  let unanswered = 0
  let last: Promise<unknown> = Promise.resolve()
  const close = (error: Error) => {
    closed ??= error
  }
  const sendNow: Send = async (sql, values = []) => {
    if (closed) throw new Error('The transaction has ended') // not `closed`, because Knex writes the values into the error
    const answer = await run(runner, sql, values)
    if (typeof answer.affected === 'number' || !COUNTED.test(sql) || answerTo(sql) === 'rows') return answer
    close(uncounted())
    throw new Error('The runner did not count')
  }
  const send: Send = (sql, values) => {
    if (!isOpen) return Promise.resolve(nothing)
    unanswered += 1
    const sent = last.then(() => sendNow(sql, values)).finally(() => (unanswered -= 1))
    last = sent.catch(() => undefined)
    return sent
  }
  return {
    connection: forms[runner.dialect](send),
    open() {
      isOpen = true
    },
    close,
    refuse() {
      if (closed) throw closed
    },
    isBusy: () => unanswered > 0,
  }
}

/** The store reads how many rows these have changed. */
const COUNTED = /^\s*(?:update|delete)\b/i

function uncounted(): ConfigurationError {
  return new ConfigurationError(
    'store.join(): the runner must answer `affected`, the number of changed rows, to UPDATE and DELETE. Roll the transaction back.',
  )
}

const nothing: SqlAnswer = { rows: [], affected: null }

async function run(runner: SqlRunner, sql: string, values: readonly unknown[]): Promise<SqlAnswer> {
  if (ENDS.test(sql)) throw new Error('Only the app begins and ends the transaction that doorward has joined')
  try {
    return await runner.run(sql, values as SqlValue[], answerTo(sql)) // of a column of the app they may be others, as `SqlRunner` says
  } catch (error) {
    throw driverError(error)
  }
}

const ENDS = /^\s*(?:begin|start\s+transaction|set\s+transaction|commit|end|abort|rollback(?!.*\bto\b))\b/i

const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`/g

function answerTo(sql: string): 'rows' | 'count' {
  const words = sql.replace(QUOTED, '')
  return /^[\s(]*(?:select|with|values|show|explain|pragma)\b|\breturning\b/i.test(words) ? 'rows' : 'count'
}

type Callback = (error: unknown, answer?: unknown, columns?: readonly []) => void

function calling(callback: Callback, answer: Promise<unknown>): void {
  answer.then(
    (value) => callback(null, value, []),
    (error: unknown) => callback(error),
  )
}

/** `pg`, `mysql2` and `better-sqlite3` (whose answers Knex awaits). */
const forms: Readonly<Record<SqlRunner['dialect'], (send: Send) => object>> = {
  postgresql: (send) => ({
    query({ text, values }: { text: string; values?: readonly unknown[] }, callback: Callback) {
      calling(
        callback,
        send(text, values).then((answer) => ({ command: commandOf(text), rows: answer.rows, rowCount: answer.affected })),
      )
    },
  }),
  mysql: (send) => ({
    query({ sql }: { sql: string }, values: readonly unknown[] | undefined, callback: Callback) {
      const packet = ({ rows, affected, insertId }: SqlAnswer) =>
        answerTo(sql) === 'rows' ? rows : { affectedRows: affected, insertId: insertId ?? 0 }
      calling(callback, send(sql, values).then(packet))
    },
  }),
  sqlite: (send) => ({
    prepare: (sql: string) => ({
      reader: answerTo(sql) === 'rows',
      all: async (values: readonly unknown[]): Promise<readonly Row[]> => (await send(sql, values)).rows,
      run: async (values: readonly unknown[]) => {
        const { affected, insertId } = await send(sql, values)
        return { changes: affected, lastInsertRowid: insertId }
      },
    }),
  }),
}

/** As the server calls the statement: WITH that returns rows is a SELECT. */
function commandOf(sql: string): string {
  return answerTo(sql) === 'rows' ? 'SELECT' : (/\w+/.exec(sql)?.[0] ?? '').toUpperCase()
}

/** Libraries wrap the error of the driver: Drizzle as `cause`, Prisma as a plain object. */
function driverError(error: unknown): unknown {
  const { cause, code, meta } = Object(error) as { cause?: unknown; code?: unknown; meta?: { driverAdapterError?: { cause?: unknown } } }
  const ofPrisma = meta?.driverAdapterError?.cause
  if (typeof ofPrisma === 'object' && ofPrisma !== null) return errorOfPrisma(ofPrisma)
  return code === undefined && cause instanceof Error && cause !== error ? driverError(cause) : error
}

function errorOfPrisma(found: { originalMessage?: unknown; originalCode?: unknown; code?: unknown }): Error {
  const { originalMessage, originalCode, code = originalCode, ...rest } = found
  return Object.assign(new Error(String(originalMessage)), rest, { code: originalCode ?? code })
}
