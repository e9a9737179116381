import type { Row } from './queryable'
import type { SqlAnswer, SqlRunner, SqlValue } from './runners'

type Send = (sql: string, values: readonly unknown[] | undefined) => Promise<SqlAnswer>

/**
 * A connection for Knex in the form of the driver's, which sends each statement through the runner. So Knex compiles the statements and
 * reads the answers as for its own connections.
 * @returns `open` ends the start, in which the BEGIN of Knex is answered and not sent
 */
export function driverConnection(runner: SqlRunner): { connection: object; open: () => void } {
  let isOpen = false
  let last: Promise<unknown> = Promise.resolve()
  const send: Send = (sql, values = []) => {
    if (!isOpen) return Promise.resolve(nothing)
    const sent = last.then(() => run(runner, sql, values))
    last = sent.catch(() => undefined)
    return sent
  }
  const open = () => {
    isOpen = true
  }
  return { connection: forms[runner.dialect](send), open }
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
