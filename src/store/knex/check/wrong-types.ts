import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import type { ColumnKind } from '../column-values'
import type { Dialect } from '../dialect'
import { changeType } from './mend'
import { type CheckedColumn, finding, type Subject } from './subject'
import type { ColumnFacts, TypeFamily } from './table-facts'

/** Finds columns whose type cannot hold our values, or compares the values in another way. */
export function wrongTypes(subject: Subject): TableFinding[] {
  return subject.columns.flatMap((column) => {
    if (!column.facts) return []
    if (column.facts.isGenerated) return [generated(subject, column, column.facts)]
    if (!accepts(subject.dialect, column.kind, column.facts)) return [wrong(subject, column, column.facts)]
    if (column.facts.isPadded && column.facts.length !== fixedLength(column)) return [padded(subject, column, column.facts)]
    return column.kind === 'native' && column.facts.family === 'zoneless' ? [zoneless(subject, column, column.facts)] : []
  })
}

const ACCEPTED: Readonly<Record<Dialect['name'], Readonly<Record<ColumnKind, readonly TypeFamily[]>>>> = {
  postgresql: {
    uuid: ['uuid', 'text', 'other'],
    'integer key': ['integer', 'number', 'other'],
    'text key': ['text', 'other'],
    text: ['text', 'other'],
    integer: ['integer', 'number', 'other'],
    boolean: ['boolean'],
    native: ['instant', 'zoneless', 'other'],
    epoch_ms: ['integer', 'number', 'other'],
    iso: ['text', 'other'],
  },
  mysql: {
    uuid: ['uuid', 'text', 'other'],
    'integer key': ['integer', 'number', 'other'],
    'text key': ['text', 'other'],
    text: ['text', 'other'],
    integer: ['integer', 'number', 'other'],
    boolean: ['boolean', 'integer'],
    native: ['instant', 'other'],
    epoch_ms: ['integer', 'number', 'other'],
    iso: ['text', 'other'],
  },
  // A column of SQLite accepts values of every type, but its affinity converts some of them. These are the types that keep each value.
  sqlite: {
    uuid: ['text', 'untyped', 'number', 'bytes'],
    'integer key': ['integer', 'number'],
    'text key': ['text', 'untyped', 'bytes'],
    text: ['text', 'untyped', 'bytes'],
    integer: ['integer', 'number', 'untyped', 'bytes'],
    boolean: ['integer', 'number'],
    native: ['integer', 'number', 'untyped', 'bytes'],
    epoch_ms: ['integer', 'number', 'untyped', 'bytes'],
    iso: ['text', 'untyped', 'number', 'bytes', 'integer'],
  },
}

/** Returns true if the column can hold the values. MariaDB's BOOLEAN is a TINYINT, an integer of one byte. */
function accepts({ name }: Dialect, kind: ColumnKind, { family, bytes }: ColumnFacts): boolean {
  if (name === 'mysql' && kind === 'boolean' && family === 'integer') return bytes === 1
  return ACCEPTED[name][kind].includes(family)
}

function wrong(subject: Subject, column: CheckedColumn, facts: ColumnFacts): TableFinding {
  const { table, record } = subject
  const { kind, name } = column
  const is = `${table}.${name} is ${facts.type}`
  if (kind === 'uuid' || kind === 'integer key' || kind === 'text key') {
    const consequence = `${is}, but \`users.ids\` or \`${record}.ids\` says another kind of keys, so doorward finds nobody by their id.`
    const message = `${consequence} ${keyFix(column, facts, record)} ${seeTroubleshooting('ids-of-another-kind')}`
    return finding(subject, name, { what: 'type', level: 'error', message })
  }
  const option = kind === 'boolean' ? null : instantOption(kind, facts)
  const fix = option ? `Set \`${record}: { instants: '${option}' }\` in createKnexStore(), or change the column.` : 'Change the column.'
  const message = `${is} but must hold ${meanings[kind]}, so reading or writing the column fails or returns a wrong value. ${fix} ${seeTroubleshooting('a-column-has-the-wrong-type')}`
  return finding(subject, name, { what: 'type', level: 'error', message, sql: option ? null : mended(subject, column, facts) })
}

const meanings: Readonly<Record<ColumnKind, string>> = {
  uuid: 'a UUID',
  'integer key': 'an integer key',
  'text key': 'a text key',
  text: 'text',
  integer: 'an integer',
  boolean: 'a flag (true or false)',
  native: 'an instant',
  epoch_ms: 'milliseconds since 1970',
  iso: 'an instant as text',
}

function keyFix({ field }: CheckedColumn, { family }: ColumnFacts, record: string): string {
  const ids = family === 'integer' || family === 'number' ? 'integer' : family === 'uuid' ? 'uuid' : family === 'text' ? 'text' : null
  const owner = field === 'userId' ? 'users' : record
  return ids && !(record === 'sessions' && ids === 'integer' && field === 'id')
    ? `If the keys really are of the kind ${ids}, set \`${owner}: { ids: '${ids}' }\` in createKnexStore() and createAuthTables(). Otherwise change the column.`
    : 'Change the column to text or UUIDs.'
}

function instantOption(kind: ColumnKind, { family, bytes }: ColumnFacts): string | null {
  if (kind !== 'native' && kind !== 'epoch_ms' && kind !== 'iso') return null
  if (family === 'text') return 'iso'
  if (family === 'integer' && (bytes === null || bytes === 8)) return 'epoch_ms'
  return family === 'instant' || family === 'zoneless' ? 'native' : null
}

function mended(subject: Subject, { kind, type }: CheckedColumn, facts: ColumnFacts): string | null {
  const { family } = facts
  if (family === 'bytes' || family === 'other') return null
  if (kind !== 'boolean') return changeType(subject, facts, type, (value) => `cast(${value} as ${type})`)
  const isNumber = family === 'integer' || family === 'number'
  return changeType(subject, facts, type, (value) => (isNumber ? `${value} <> 0` : `cast(${value} as boolean)`))
}

function generated(subject: Subject, column: CheckedColumn, _facts: ColumnFacts): TableFinding {
  const { record, table } = subject
  const message = `${table}.${column.name} is generated by the database, so every INSERT fails. Name another column in \`${record}.columns.${column.field}\`, or set \`false\` there if the field is optional. ${seeTroubleshooting('a-column-has-the-wrong-type')}`
  return finding(subject, column.name, { what: 'generated', level: 'error', message })
}

/** Returns the length of the values if all values have equal length. Such values need no blanks. Otherwise returns null. */
function fixedLength({ field, kind }: CheckedColumn): number | null {
  if (kind === 'uuid') return 36
  if (kind === 'iso') return 24
  return field === 'tokenHash' || field === 'codeHash' ? 64 : null
}

/** Reports a padded column. PostgreSQL returns a `char(n)` value with its blanks, and our code compares values byte for byte. */
function padded(subject: Subject, column: CheckedColumn, facts: ColumnFacts): TableFinding {
  const message = `${subject.table}.${column.name} is ${facts.type}, which adds blanks to shorter values, so doorward reads other values than it wrote. Change the column. ${seeTroubleshooting('a-column-has-the-wrong-type')}`
  const sql = changeType(subject, facts, column.type, (value) => `rtrim(${value})`)
  return finding(subject, column.name, { what: 'type', level: 'error', message, sql })
}

function zoneless(subject: Subject, column: CheckedColumn, facts: ColumnFacts): TableFinding {
  const message = `${subject.table}.${column.name} is ${facts.type}, which is right only while the process and the database session are both in UTC. Change the column; the statement treats the existing values as UTC. ${seeTroubleshooting('a-timestamp-without-time-zone')}`
  const sql = changeType(subject, facts, column.type, (value) => `${value} at time zone 'UTC'`)
  return finding(subject, column.name, {
    what: 'zone',
    level: 'warning',
    message,
    fails: 'Outside of UTC, every instant is read hours early or late.',
    sql,
  })
}
