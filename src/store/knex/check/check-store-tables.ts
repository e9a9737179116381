import type { Knex } from 'knex'
import type { TableFinding } from '../../auth-store'
import { databaseName } from '../database-name'
import type { HostTables, Tables } from '../default-tables'
import type { Dialect } from '../dialect'
import { hostColumnsOf, missingHostColumns } from './host-columns'
import { looseColumns } from './loose-columns'
import { missingColumns } from './missing-columns'
import { missingForeignKeys, missingIndexes, missingUniqueRules } from './missing-rules'
import { boundedColumns, narrowColumns } from './narrow-columns'
import { pendingFirst } from './pending-first'
import { probeUsers } from './probes'
import { readBack } from './read-back'
import { readTable } from './read-table'
import { type AnyTable, type Subject, subjectOf } from './subject'
import { missingTable, unreadable, unusableDatabase, viewInstead } from './table-findings'
import type { TableNeeds } from './table-needs'
import { unfilledColumns } from './unfilled-columns'
import { wrongTypes } from './wrong-types'

export interface CheckedTables {
  readonly knex: Knex
  readonly dialect: Dialect
  readonly tables: Tables
  readonly hostTables: HostTables
}

/**
 * Compares the tables with the values that the store writes. Sends one query of the catalogue for each table, and at most three
 * other queries. Also tells `tables` the widths of narrow columns, so that the store cuts or rejects longer values.
 */
export async function checkStoreTables(checked: CheckedTables, needs: TableNeeds): Promise<TableFinding[]> {
  try {
    const subjects: Subject[] = []
    for (const record of recordsIn(checked.hostTables, needs)) subjects.push(await lookAt(checked, record))
    const users = subjects[0] // recordsIn returns users first
    if (!users) return []
    for (const subject of subjects) keepWidths(checked.tables, subject, needs)
    const found = await pendingFirst(
      checked,
      subjects.flatMap((subject) => findingsOf(checked, subject, users, needs)),
    )
    if (users.facts.kind !== 'table') return found
    const faulty = new Set(found.filter(({ table }) => table === users.table).map(({ column }) => column))
    return [...found, ...(await readBack(checked.knex, users, faulty)), ...(await probeUsers(checked.knex, users, needs))]
  } catch (error) {
    return [unusableDatabase(error)]
  }
}

function recordsIn(hostTables: HostTables, { recoveryCodes, passkeys, emailLogins }: TableNeeds): (keyof HostTables)[] {
  const all: (keyof HostTables)[] = [
    'users',
    'userTokens',
    'identities',
    'sessions',
    ...(recoveryCodes ? (['recoveryCodes'] as const) : []),
    ...(passkeys ? (['passkeys'] as const) : []),
    ...(emailLogins ? (['emailLogins'] as const) : []),
  ]
  return all.filter((record) => hostTables[record] !== false)
}

export async function lookAt({ knex, dialect, tables, hostTables }: CheckedTables, record: keyof HostTables): Promise<Subject> {
  const table = tables[record] as unknown as AnyTable // all records are checked in the same way
  const facts = await readTable(knex, dialect, databaseName(knex, table.name))
  const isRole = record === 'users' && tables.users.role !== null
  return subjectOf(knex, dialect, record, { table, isMapped: hostTables[record] !== undefined, isRole, facts })
}

function keepWidths(tables: Tables, subject: Subject, needs: TableNeeds): void {
  const table = tables[subject.record] as unknown as { narrow(field: string, width: { length: number; isCut: boolean }): void } // as above: all records are checked in the same way
  for (const { field, ...width } of boundedColumns(subject, needs)) table.narrow(field, width)
}

function findingsOf({ knex, hostTables }: CheckedTables, subject: Subject, users: Subject, needs: TableNeeds): TableFinding[] {
  const host = hostColumnsOf(knex, hostTables, subject)
  switch (subject.facts.kind) {
    case 'missing':
      return [missingTable(subject)]
    case 'view':
      return [viewInstead(subject)]
    case 'unreadable':
      return [unreadable(subject)]
    default:
      return [
        ...missingColumns(subject),
        ...missingHostColumns(subject, host),
        ...wrongTypes(subject),
        ...narrowColumns(subject, needs),
        ...unfilledColumns(subject, host, needs),
        ...missingUniqueRules(subject),
        ...missingIndexes(subject),
        ...missingForeignKeys(subject, users),
        ...looseColumns(subject, needs),
      ]
  }
}
