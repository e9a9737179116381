import { AppError, ConfigurationError, ServiceUnavailableError } from '../../core/errors'
import { withOwnMessage } from '../../core/logger'
import { DuplicateRecordError, ReferencedRecordError } from '../auth-store'
import { referringTableOf, type TableAndColumn, tableAndColumnOf } from './table-and-column'

/** Drivers put bound values (addresses, hashes) into messages, and knex adds the whole statement. So the new error has only the code. */
export function translateDriverError(verb: string, error: unknown, advise: Advise = adviseDefaultTables): Error {
  if (error instanceof AppError || error instanceof ConfigurationError || error instanceof DuplicateRecordError) return error
  const code = codeOf(error)
  // A deferred foreign key is checked at the end of the transaction.
  if (heldByForeignKey.test(code) && (verb === deletionVerb || verb === 'transaction'))
    return new ReferencedRecordError(`${verb}: a row of another table refers to the record (${code})`, referringTableOf(code, error))
  if (DUPLICATE.has(code)) return new DuplicateRecordError(`${verb}: a record with these unique values exists (${code})`)
  if (isConflictCode(code) || isOutage(code) || isLostConnection(error) || isInHostTransaction(code, error)) {
    const cause = new DriverError(verb, code)
    return new ServiceUnavailableError({ message: cause.message, cause })
  }
  return new DriverError(verb, code, advise(verb, tableAndColumnOf(code, error)))
}

/** The method that deletes an account. */
export const deletionVerb = 'users.delete'

/** The codes of the three databases if another table refers to the row. */
export const heldByForeignKey = /^(23503|ER_ROW_IS_REFERENCED(_2)?|SQLITE_CONSTRAINT_(FOREIGNKEY|TRIGGER))$/

export type Advise = (verb: string, place: TableAndColumn) => string

function adviseDefaultTables(_verb: string, { problem, table }: TableAndColumn): string {
  const isMissing = problem === 'missing table' || problem === 'missing column'
  return isMissing ? `${table === null ? '' : `: ${problem} of ${table}`}; run createAuthTables() or the migrations` : ''
}

/** Such a transaction may succeed when it runs again. */
export function isConflict(error: unknown): boolean {
  return error instanceof ServiceUnavailableError && error.cause instanceof DriverError && isConflictCode(error.cause.code)
}

/** Null: the error is no failure of the database, or says only that the database is out of reach. */
export function driverCodeIn(error: unknown): string | null {
  return error instanceof DriverError ? error.code : null
}

/** No row can contain a text that the column's character set cannot represent (`ascii`, `latin1`, `utf8mb3`, no UTF8). */
export function isUnwritableText(error: unknown): boolean {
  return error instanceof DriverError && /^(ER_CANT_AGGREGATE_2COLLATIONS|22P05)$/.test(error.code)
}

/** `other`: the reason is unknown, and the store may still work. */
export interface Trouble {
  readonly kind: 'missing table' | 'no database' | 'refused login' | 'unreachable' | 'other'
  readonly code: string
}

export function troubleOf(error: unknown): Trouble {
  const code = codeOf(error)
  if (code === '42P01' || code === 'ER_NO_SUCH_TABLE' || tableAndColumnOf(code, error).problem === 'missing table')
    return { kind: 'missing table', code }
  if (/^(3D000|ER_BAD_DB_ERROR|ER_NO_DB_ERROR)$/.test(code)) return { kind: 'no database', code }
  if (/^(28...|ER_(DB)?ACCESS_DENIED_ERROR)$/.test(code)) return { kind: 'refused login', code }
  const isUnreachable = isLostConnection(error) || UNREACHABLE.some((pattern) => pattern.test(code))
  return { kind: isUnreachable ? 'unreachable' : 'other', code }
}

/** doorward writes the message, so logs may contain it. The driver's error is no `cause`, because `console.error` prints every `cause`. */
class DriverError extends Error {
  override readonly name = 'DriverError'
  readonly code: string

  constructor(verb: string, code: string, hint = '') {
    super(`The database failed at ${verb} (${code})${hint}`)
    this.code = code
    withOwnMessage(this)
  }
}

const DUPLICATE: ReadonlySet<string> = new Set([
  '23505',
  'ER_DUP_ENTRY',
  'SQLITE_CONSTRAINT_UNIQUE',
  'SQLITE_CONSTRAINT_PRIMARYKEY',
  'SQLITE_CONSTRAINT_ROWID',
])

/** We must not end a transaction that the host began by its own statement. */
function isInHostTransaction(code: string, error: unknown): boolean {
  return code === 'SQLITE_ERROR' && error instanceof Error && error.message.endsWith('cannot start a transaction within a transaction')
}

// PostgreSQL: serialization failure, deadlock. MariaDB: deadlock (1213), changed row (1020). SQLite: file changed after the first read.
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD', 'SQLITE_BUSY_SNAPSHOT'])

/** InnoDB has rolled back the whole transaction. Later statements on the connection run outside of the transaction. */
export const rolledBack: ReadonlySet<unknown> = new Set(['ER_LOCK_DEADLOCK', 'ER_CHECKREAD', 'ER_LOCK_TABLE_FULL'])

function isConflictCode(code: string): boolean {
  return CONFLICTS.has(code) || code.startsWith('SQLITE_LOCKED')
}

/** Socket errors, a full pool, a server that shuts down or has no free connection, a file that cannot be opened. */
const UNREACHABLE = [
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENET|ENOENT|EACCES)/,
  /^(KnexTimeoutError|PROTOCOL_CONNECTION_LOST)$/,
  /^(08...|53...|57P..)$/,
  /^SQLITE_(CANTOPEN|IOERR|NOTADB)/,
  /^ER_(CON_COUNT_ERROR|HOST_IS_BLOCKED|HOST_NOT_PRIVILEGED|SERVER_SHUTDOWN|TOO_MANY_USER_CONNECTIONS|USER_LIMIT_REACHED)$/,
]

// Codes of an outage, in the order of the patterns:
// - Sockets, name resolution, and knex's full pool.
// - PostgreSQL: classes 08 (connection), 28 and 3D (login refused), 53 (resources) and 57P (shutdown). Also a cancelled statement (57014),
//   a read-only transaction (25006) and a missing privilege (42501).
// - Prisma has ended the transaction after its time limit.
// - A lock that was not available within the database's timeout. The store does not try again, because it would only wait again.
// - A SQLite file that cannot be used.
// - MariaDB: the server refuses the login or the table, shuts down, has no connections or disk left, is read-only, or ended a slow query.
const OUTAGES = [
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENET)/,
  /^(KnexTimeoutError|PROTOCOL_CONNECTION_LOST)$/,
  /^(08...|28...|3D000|53...|57P..|57014|25006|42501)$/,
  /^P2028$/,
  /^(55P03|ER_LOCK_WAIT_TIMEOUT|SQLITE_BUSY(_RECOVERY|_TIMEOUT)?)$/,
  /^SQLITE_(CANTOPEN|IOERR|FULL|READONLY|PROTOCOL|NOTADB)/,
  /^ER_((DB|TABLE|COLUMN)?ACCESS_DENIED_ERROR|BAD_DB_ERROR|HOST_IS_BLOCKED|HOST_NOT_PRIVILEGED|SERVER_SHUTDOWN)$/,
  /^ER_(CON_COUNT_ERROR|TOO_MANY_USER_CONNECTIONS|USER_LIMIT_REACHED|OUT_OF_RESOURCES|DISK_FULL|RECORD_FILE_FULL)$/,
  /^ER_(READ_ONLY_MODE|OPTION_PREVENTS_STATEMENT|CANT_EXECUTE_IN_READ_ONLY_TRANSACTION)$/,
  /^ER_(QUERY_INTERRUPTED|QUERY_TIMEOUT|CLIENT_INTERACTION_TIMEOUT|ABORTING_CONNECTION|NEW_ABORTING_CONNECTION|NET_(?!PACKET)\w+)$/,
  /^ERRNO_(1927|1969)$/, // connection killed (1927) and statement timeout (1969): mysql2 has no names for these numbers
]

function isOutage(code: string): boolean {
  return OUTAGES.some((pattern) => pattern.test(code))
}

// Errors that pg, mysql2 and the pool report without a code. Knex puts the statement before the message, so the pattern matches the end.
const LOST =
  /(?:Connection terminated(?: unexpectedly| due to connection timeout)?|connection error and is not queryable|Client was closed and is not queryable|timeout exceeded when trying to connect|timeout expired|Query read timeout|Can't add new command when connection is in closed state|Unable to acquire a connection|The database connection is not open|^aborted)$/

function isLostConnection(error: unknown): boolean {
  return error instanceof Error && !('code' in error) && LOST.test(error.message)
}

// Returns the driver's code if it is a short word. Other values could contain a secret.
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code, errno } = error as { code?: unknown; errno?: unknown } // drivers add them, Error does not declare them
  if (typeof code === 'string' && /^\w{1,64}$/.test(code)) return code
  if (Number.isInteger(errno)) return `ERRNO_${errno}`
  return /^\w{1,64}$/.test(error.name) ? error.name : 'unknown'
}
