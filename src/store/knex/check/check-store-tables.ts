import type { Knex } from 'knex'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import { bindTables, type HostTables, type Tables } from '../default-tables'
import type { Dialect } from '../dialect'
import { dialectOf } from '../dialect-of'
import { troubleOf } from '../driver-errors'
import { databaseName } from '../queryable'
import {
  hostColumnsOf,
  missingColumns,
  missingForeignKeys,
  missingHostColumns,
  missingIndexes,
  missingUniqueRules,
} from './missing-columns'
import { pendingFirst, probeUsers } from './probes'
import { readTable } from './read-table'
import { type AnyTable, finding, type Subject, subjectOf } from './subject'
import type { TableNeeds } from './table-needs'
import { readBack, unfilledColumns } from './unfilled-columns'
import { boundedColumns, looseColumns, narrowColumns, wrongTypes } from './wrong-types'

export interface CheckedTables {
  readonly knex: Knex
  readonly dialect: Dialect
  readonly tables: Tables
  readonly hostTables: HostTables
}

/** One query of the catalogue a table, and at most three others. Tells `tables` narrow columns, to cut or reject values. */
export async function checkStoreTables(checked: CheckedTables, needs: TableNeeds): Promise<TableFinding[]> {
  try {
    const subjects: Subject[] = []
    for (const record of recordsIn(checked.hostTables, needs))
      subjects.push(withoutUnneeded(checked.tables, await lookAt(checked, record), needs))
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

function recordsIn(
  hostTables: HostTables,
  { recoveryCodes, passkeys, emailLogins, trustedDevices, invitations, outbox, leases }: TableNeeds,
): (keyof HostTables)[] {
  const all: (keyof HostTables)[] = [
    'users',
    'userTokens',
    'identities',
    'sessions',
    ...(recoveryCodes ? (['recoveryCodes'] as const) : []),
    ...(passkeys ? (['passkeys'] as const) : []),
    ...(emailLogins ? (['emailLogins'] as const) : []),
    ...(trustedDevices ? (['trustedDevices'] as const) : []),
    ...(invitations ? (['invitations', 'invitationUses'] as const) : []),
    ...(outbox ? (['outbox'] as const) : []),
    ...(leases ? (['leases'] as const) : []),
  ]
  return all.filter((record) => hostTables[record] !== false)
}

export async function lookAt({ knex, dialect, tables, hostTables }: CheckedTables, record: keyof HostTables): Promise<Subject> {
  const table = tables[record] as unknown as AnyTable // all records are checked in the same way
  const facts = await readTable(knex, dialect, databaseName(knex, table.name))
  const isRole = record === 'users' && tables.users.role !== null
  return subjectOf(knex, dialect, record, { table, isMapped: hostTables[record] !== undefined, isRole, facts })
}

/** So that the default tables of an earlier release serve while the features of their newer columns are off. */
function withoutUnneeded(tables: Tables, subject: Subject, { approval, invitations }: TableNeeds): Subject {
  const unneeded: Record<string, string> = {
    ...(!approval && { users: 'approvalRequestedAt' }),
    ...(!invitations && { emailLogins: 'invitationId' }),
  }
  const left = subject.columns.find(({ field, facts }) => field === unneeded[subject.record] && !facts)
  if (!left || subject.isMapped || subject.facts.kind !== 'table') return subject
  const table = tables[subject.record] as unknown as { leaveOut(field: string): void } // as in `lookAt`
  table.leaveOut(left.field)
  return { ...subject, columns: subject.columns.filter((column) => column !== left) }
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

/** Missing default tables are pending migrations, so this is only for tables of the host. */
function missingTable(subject: Subject): TableFinding {
  const { record, table } = subject
  const message = `There is no table ${table}, or this role may not see it. Name your table in \`${record}.table\` of createKnexStore(), with its schema if it is in one (\`app.people\`). ${seeTroubleshooting('a-table-is-missing')}`
  return finding(subject, null, { level: 'error', message })
}

const unseen = 'A fault of this table shows only when a request fails.'

/** A view has no unique rules, and only the host knows the tables behind the view. */
function viewInstead(subject: Subject): TableFinding {
  const message = `${subject.table} is not a table, but for example a view, so doorward did not check its columns and rules. ${seeTroubleshooting('a-table-cannot-be-looked-at')}`
  return finding(subject, null, { what: 'view', level: 'warning', message, fails: unseen })
}

function unreadable(subject: Subject): TableFinding {
  const message = `The catalogue of the database says nothing about ${subject.table}, so doorward did not check its columns and rules. ${seeTroubleshooting('a-table-cannot-be-looked-at')}`
  return finding(subject, null, { what: 'unreadable', level: 'warning', message, fails: unseen })
}

const troubles = {
  'no database': 'The database does not exist. Create it, or correct its name in the connection of your knex instance',
  'refused login': 'The database refuses the user or the password of your knex instance. Correct its connection',
  unreachable: 'The database cannot be reached. Start it, or correct the connection of your knex instance',
}

export function databaseTrouble(error: unknown): string | null {
  const { kind, code } = troubleOf(error)
  return kind in troubles ? `${troubles[kind as keyof typeof troubles]} (${code}).` : null
}

/** The message contains the driver's code, never an address or a name. */
function unusableDatabase(error: unknown): TableFinding {
  const message = databaseTrouble(error) ?? `${troubles.unreachable} (${troubleOf(error).code}).`
  return {
    key: 'database',
    level: 'error',
    table: '',
    column: null,
    message: `${message} doorward will try again. ${seeTroubleshooting('the-database-cannot-be-used')}`,
    sql: null,
  }
}

/** @throws ConfigurationError for a client that this store was not tested with, and for options that are unknown or wrong */
export function tablesToCheck(knex: Knex, hostTables: HostTables): CheckedTables {
  const dialect = dialectOf(knex)
  return { knex, dialect, tables: bindTables(knex, dialect, hostTables), hostTables }
}
