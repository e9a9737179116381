import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { SessionKind, TableFinding, UserTokenPurpose } from '../../auth-store'
import type { HostTables } from '../default-tables'
import { changeType } from './mend'
import { type CheckedColumn, finding, type Subject } from './subject'
import type { ColumnFacts } from './table-facts'
import type { TableNeeds } from './table-needs'

/** A column that is narrower than the longest value. The store cuts or refuses a longer value, so the finding is only a warning. */
export interface NarrowColumn {
  readonly field: string
  readonly length: number
  readonly isCut: boolean
}

/** Finds columns that are too narrow for the values we write. */
export function narrowColumns(subject: Subject, needs: TableNeeds): TableFinding[] {
  return subject.columns.flatMap((column) => narrow(subject, column, needs) ?? [])
}

/** Returns the columns whose width limits the values that the store writes. */
export function boundedColumns(subject: Subject, needs: TableNeeds): NarrowColumn[] {
  return subject.columns.flatMap((column) => {
    const length = column.facts?.length ?? null
    const use = useOf(subject.record, column.field)
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
  const use = useOf(subject.record, column.field)
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

/** Returns the type that a text column should have. If the column is too narrow, the type is wider. */
export function textTypeOf(subject: Subject, column: CheckedColumn, facts: ColumnFacts, needs: TableNeeds): string {
  const length = lackedLength(subject, column, needs)
  return length === null ? facts.type : wideType(column, length)
}

function wideType({ kind, type }: CheckedColumn, length: number): string {
  if (kind === 'uuid' || kind === 'text key') return `varchar(${length})`
  return kind === 'iso' ? 'varchar(24)' : type
}

/** Returns the length in characters that the column needs. Null: the column is wide enough. */
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

/** Returns what the store does with a value that is too long. Null: the store sends the value, and the database fails. */
function useOf(record: keyof HostTables, field: string): 'cut' | 'refused with 422' | null {
  if (field === 'email' || field === 'payload') return 'refused with 422'
  const isCut = (record === 'users' && field === 'name') || ['name', 'picture', 'ip', 'userAgent'].includes(field)
  return isCut ? 'cut' : null
}

const longestPurpose = 'EMAIL_VERIFICATION' satisfies UserTokenPurpose
const longestKind = 'session' satisfies SessionKind
/** The longest registration key of a provider that the check at boot allows. */
const longestProvider = 50

/** The longest `return_to` that the check of the parameter allows. */
const longestReturnTo = 1_024

/** Returns the length of the longest value, in characters. Null: unknown, or no limit. */
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
    case 'returnTo':
      return longestReturnTo
    case 'name':
      return 200
    default:
      return maxLength
  }
}
