import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import { addColumn } from './mend'
import { type CheckedColumn, finding, type Subject } from './subject'

/** Finds columns that every statement names but the table lacks. */
export function missingColumns(subject: Subject): TableFinding[] {
  return subject.columns.flatMap((column) => (column.facts ? [] : [missing(subject, column)]))
}

function missing(subject: Subject, column: CheckedColumn): TableFinding {
  const { record, table, isMapped } = subject
  const fix = isMapped
    ? `Add the column, or name your column in \`${record}.columns.${column.field}\` of createKnexStore()`
    : 'Add the column; createAuthTables() and the migrations do not change an existing table'
  const message = `The table ${table} has no column ${column.name}, so every statement on it fails. ${fix}. ${seeTroubleshooting('a-column-is-missing')}`
  const definition = definitionOf(subject, column)
  return finding(subject, column.name, { level: 'error', message, sql: definition && addColumn(subject, column.name, definition) })
}

/** Returns the column's definition. Null: the existing rows need a value, but there is no correct value. */
function definitionOf(subject: Subject, column: CheckedColumn): string | null {
  const type = typeOf(column)
  if (!column.isNotNull) return type
  const value = valueFor(subject, column)
  return value && `${type} not null default ${value}`
}

function typeOf({ kind, type }: CheckedColumn): string {
  if (kind === 'epoch_ms') return 'bigint'
  return kind === 'iso' ? 'varchar(24)' : type
}

/** Returns the value for existing rows. An existing account becomes active, with a hash that no password matches. */
function valueFor({ dialect, record }: Subject, { field, kind }: CheckedColumn): string | null {
  const isPostgresql = dialect.name === 'postgresql'
  if (kind === 'boolean') {
    const value = field === 'isActive'
    return isPostgresql ? String(value) : String(Number(value))
  }
  if (kind === 'integer') return '0'
  if (record === 'users' && field === 'hashedPassword') return dialect.name === 'mysql' ? "('!')" : "'!'"
  const now = new Date()
  if (kind === 'epoch_ms') return String(now.getTime())
  if (kind === 'iso') return `'${now.toISOString()}'`
  if (kind !== 'native') return null
  if (dialect.name === 'sqlite') return String(now.getTime())
  return isPostgresql ? 'now()' : '(utc_timestamp(3))'
}
