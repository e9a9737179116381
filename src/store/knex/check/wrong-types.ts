import { seeTroubleshooting } from '../../../core/troubleshooting'
import { longestReturnTo } from '../../../http/return-to'
import type { SessionKind, TableFinding, UserTokenPurpose } from '../../auth-store'
import type { ColumnKind } from '../column-values'
import type { HostTables } from '../default-tables'
import type { Dialect } from '../dialect'
import { changeType } from './mend'
import { type CheckedColumn, finding, type Subject } from './subject'
import type { ColumnFacts, TypeFamily } from './table-facts'
import type { TableNeeds } from './table-needs'

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

/** MariaDB's BOOLEAN is a TINYINT, an integer of one byte. */
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

/** Values of equal length need no blanks. Null: the lengths differ. */
function fixedLength({ field, kind }: CheckedColumn): number | null {
  if (kind === 'uuid') return 36
  if (kind === 'iso') return 24
  return field === 'tokenHash' || field === 'codeHash' ? 64 : null
}

/** PostgreSQL returns a `char(n)` value with its blanks, and our code compares values byte for byte. */
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

/** The store cuts or refuses a longer value, so the finding is only a warning. */
interface NarrowColumn {
  readonly field: string
  readonly length: number
  readonly isCut: boolean
}

export function narrowColumns(subject: Subject, needs: TableNeeds): TableFinding[] {
  return subject.columns.flatMap((column) => narrow(subject, column, needs) ?? [])
}

export function boundedColumns(subject: Subject, needs: TableNeeds): NarrowColumn[] {
  return subject.columns.flatMap((column) => {
    const length = column.facts?.length ?? null
    const use = useOf(subject.record, column.field, needs)
    return length === null || use === null || length >= (lengthOf(subject, column, needs) ?? 0)
      ? []
      : [{ field: column.field, length, isCut: use === 'cut' }]
  })
}

function narrow(subject: Subject, column: CheckedColumn, needs: TableNeeds): TableFinding | null {
  const { facts } = column
  if (!facts || facts.isGenerated) return null
  const bytes = bytesOf(column)
  if (facts.bytes !== null && bytes !== null && facts.bytes < bytes) return tooSmall(subject, column)
  const length = lackedLength(subject, column, needs)
  if (length === null) return null
  const use = useOf(subject.record, column.field, needs)
  const consequence = use === null ? 'so writing it fails' : `so a longer value is ${use}`
  const message = `${subject.table}.${column.name} is ${facts.type} and needs ${length} characters, ${consequence}. Make it wider. ${seeTroubleshooting('a-column-is-too-narrow')}`
  return finding(subject, column.name, {
    what: 'width',
    level: use === null ? 'error' : 'warning',
    message,
    fails: `A value of more than ${facts.length} characters ${use === 'cut' ? 'is cut' : 'gets 422'}.`,
    sql: changeType(subject, facts, wideType(column, length)),
  })
}

function textTypeOf(subject: Subject, column: CheckedColumn, facts: ColumnFacts, needs: TableNeeds): string {
  const length = lackedLength(subject, column, needs)
  return length === null ? facts.type : wideType(column, length)
}

function wideType({ kind, type }: CheckedColumn, length: number): string {
  if (kind === 'uuid' || kind === 'text key') return `varchar(${length})`
  return kind === 'iso' ? 'varchar(24)' : type
}

function lackedLength(subject: Subject, column: CheckedColumn, needs: TableNeeds): number | null {
  const length = lengthOf(subject, column, needs)
  const isNarrow = length !== null && typeof column.facts?.length === 'number' && column.facts.length < length
  return isNarrow ? length : null
}

function tooSmall(subject: Subject, column: CheckedColumn): TableFinding {
  const type = column.kind === 'epoch_ms' ? 'bigint' : 'integer'
  const message = `${subject.table}.${column.name} is ${column.facts?.type}, which is too small for the numbers that doorward writes, so writing them fails. Change the column to ${type}. ${seeTroubleshooting('a-column-is-too-narrow')}`
  return finding(subject, column.name, {
    what: 'width',
    level: 'error',
    message,
    sql: column.facts ? changeType(subject, column.facts, type) : null,
  })
}

function bytesOf({ kind }: CheckedColumn): number | null {
  if (kind === 'epoch_ms') return 8
  return kind === 'integer' ? 4 : null
}

/** Null: the store sends the value, and the database fails. */
function useOf(record: keyof HostTables, field: string, { pendingPasskeys }: TableNeeds): 'cut' | 'refused with 422' | null {
  if (field === 'payload' && pendingPasskeys) return null
  if (field === 'email' || field === 'payload') return 'refused with 422'
  const isCut = (record === 'users' && field === 'name') || ['name', 'picture', 'ip', 'userAgent'].includes(field)
  return isCut ? 'cut' : null
}

const longestPurpose = 'EMAIL_VERIFICATION' satisfies UserTokenPurpose
const longestKind = 'session' satisfies SessionKind
/** The longest registration key of a provider that the check at boot allows. */
const longestProvider = 50

/** A text of JSON can have fewer characters than bytes, never more. */
const longestInvitationData = 4_096

/** In characters. Null: unknown, or no limit. */
function lengthOf({ record }: Subject, { field, kind, maxLength }: CheckedColumn, needs: TableNeeds): number | null {
  if (kind === 'uuid') return 36
  if (kind === 'text key') return (record === 'sessions' || record === 'emailLogins') && field === 'id' ? 36 : null // a key of the host may have any length
  if (kind === 'iso') return 24
  if (kind !== 'text') return null
  switch (field) {
    case 'hashedPassword':
      return needs.hashLength
    case 'totpSecret':
      return needs.secretLength
    case 'provider':
      return needs.providers ? Math.max(0, ...needs.providers.map((key) => key.length)) : longestProvider
    case 'purpose':
      return longestPurpose.length
    case 'kind':
      return longestKind.length
    case 'payload':
      return needs.payloadLength
    case 'userAgent':
      return 512
    case 'data':
      return longestInvitationData
    case 'returnTo':
      return longestReturnTo
    case 'name':
      return 200
    default:
      return maxLength
  }
}

/** The fields by which the store finds rows. Their columns should compare byte for byte. */
const IDENTIFIERS: { readonly [T in keyof HostTables]-?: readonly string[] } = {
  users: ['id', 'email'],
  identities: ['userId', 'provider', 'subject'],
  userTokens: ['userId', 'tokenHash'],
  recoveryCodes: ['userId', 'codeHash'],
  passkeys: ['id', 'userId', 'credentialId'],
  sessions: ['id', 'userId', 'tokenHash'],
  emailLogins: ['id', 'email', 'tokenHash'],
  trustedDevices: ['userId', 'tokenHash'],
  invitations: ['id', 'email', 'tokenHash'],
  invitationUses: ['invitationId', 'userId'],
  outbox: ['id', 'userId'],
  leases: ['id'],
}

/** The store compares the rows again in code, so a loose collation never lets a person sign in as another person. */
export function looseColumns(subject: Subject, needs: TableNeeds): TableFinding[] {
  return subject.columns.flatMap((column) => {
    const { field, facts } = column
    if (!facts || facts.looseness === 'none' || !IDENTIFIERS[subject.record].includes(field)) return []
    // Addresses are already in lower case, so a collation that ignores only the case is harmless.
    return field === 'email' && facts.looseness === 'case' ? [] : [loose(subject, column, facts, needs)]
  })
}

function loose(subject: Subject, column: CheckedColumn, facts: ColumnFacts, needs: TableNeeds): TableFinding {
  const { field, name } = column
  const message = `The collation of ${subject.table}.${name} may treat different texts as equal (letter case, accents or trailing blanks). doorward compares the rows again byte for byte, so nobody gets another account. Still, give the column a binary collation. ${seeTroubleshooting('a-collation-is-not-byte-exact')}`
  const isKey = field === 'id' || field === 'userId' // the two columns of a foreign key must change together, by hand
  const fails = `A unique rule on ${name} refuses a value that only resembles another.`
  return finding(subject, name, {
    what: 'collation',
    level: 'warning',
    message,
    fails,
    sql: isKey ? null : exact(subject, column, facts, needs),
  })
}

/** Repeats the wanted width: this statement runs after the change of the width, and would otherwise undo it. */
function exact(subject: Subject, column: CheckedColumn, facts: ColumnFacts, needs: TableNeeds): string | null {
  const wide = textTypeOf(subject, column, facts, needs)
  if (subject.dialect.name === 'mysql') return changeType(subject, facts, `${wide} ${nopad(facts)}`)
  const type = facts.looseness === 'case' ? 'text' : wide
  return changeType(subject, facts, `${type} collate "C"`)
}

/** MariaDB and MySQL name this collation differently. */
function nopad({ charset }: ColumnFacts): string {
  return /0900/.test(charset) ? 'character set utf8mb4 collate utf8mb4_0900_bin' : 'character set utf8mb4 collate utf8mb4_nopad_bin'
}
