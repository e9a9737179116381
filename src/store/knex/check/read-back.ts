import type { Knex } from 'knex'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import { withTimeout } from '../../../core/with-timeout'
import type { TableFinding } from '../../auth-store'
import { type ColumnKind, expressionOf, fromColumn, toColumn } from '../column-values'
import type { Row } from '../queryable'
import { type CheckedColumn, finding, type Subject } from './subject'
import type { ColumnFacts } from './table-facts'

const probeMs = 2_500
const instant = new Date('2026-03-04T05:06:07.089Z')

/** A column whose type the check knows, and the value that the probe sends through it. */
interface Probed {
  readonly column: CheckedColumn
  readonly facts: ColumnFacts
  readonly alias: string
  readonly value: string | number | boolean | Date
}

/**
 * Sends an id, the flags, the instants and NULL through the types of the users' columns, and reads them back through the host's driver. A
 * type parser or a `typeCast` of the host may return another value, and an instant that is lost would mean "no second factor". Reads no
 * row. A database that cannot make the values (MariaDB before 10.6) is not probed.
 * @param faulty the columns that already have a finding
 */
export async function readBack(knex: Knex, users: Subject, faulty: ReadonlySet<string | null>): Promise<TableFinding[]> {
  const probed = users.columns.flatMap((column, index) => probedOf(column, `f${index}`, faulty))
  const rows = probed.length === 0 ? null : await send(knex, users, probed)
  const [full, empty] = rows ?? []
  if (!full || !empty) return []
  return probed.filter((each) => !isRead(each, full[each.alias], empty[each.alias])).map((each) => lost(users, each))
}

function probedOf(column: CheckedColumn, alias: string, faulty: ReadonlySet<string | null>): Probed[] {
  const { facts, kind, name } = column
  if (!facts || facts.family === 'other' || faulty.has(name)) return []
  const value = probeValue(kind, facts)
  return value === undefined ? [] : [{ column, facts, alias, value }]
}

function probeValue(kind: ColumnKind, { bytes }: ColumnFacts): Probed['value'] | undefined {
  switch (kind) {
    case 'uuid':
      return '7c9e6679-7425-40de-944b-e07fc1f90ae7'
    case 'integer key':
      return bytes === null || bytes === 8 ? '9007199254740993' : '7' // 2^53 + 1 is no JavaScript number
    case 'boolean':
      return true
    case 'native':
    case 'epoch_ms':
    case 'iso':
      return instant
    default:
      return undefined
  }
}

/** Returns a row of the values and a row of NULLs. Null: the database has no such statement, or is late. */
async function send(knex: Knex, { dialect }: Subject, probed: readonly Probed[]): Promise<Row[] | null> {
  const given = (row: Probed) => (typeof row.value === 'string' ? row.value : toColumn(row.column.kind, row.value, knex, dialect))
  const selected = probed.map(({ alias, column }) => `${(expressionOf(column.kind, dialect) ?? '??').replace('??', alias)} as ${alias}`)
  const typed = (path: (alias: string) => string) => probed.map(({ alias, facts }) => `${alias} ${facts.type}${path(alias)}`).join(', ')
  const json = JSON.stringify([{ k: 1, ...Object.fromEntries(probed.map((each) => [each.alias, given(each)])) }, { k: 2 }])
  const from = {
    postgresql: () => `jsonb_to_recordset(cast(? as jsonb)) as r(k integer, ${typed(() => '')})`,
    mysql: () => `json_table(?, '$[*]' columns (k integer path '$.k', ${typed((alias) => ` path '$.${alias}'`)})) as r`,
    sqlite: () =>
      `(select 1 as k, ${probed.map((each) => `${each.column.kind === 'integer key' ? 'cast(? as integer)' : '?'} as ${each.alias}`).join(', ')} union all select 2, ${probed.map(() => 'null').join(', ')})`,
  }
  const sql = `select ${selected.join(', ')} from ${from[dialect.name]()} order by k`
  const bindings = dialect.name === 'sqlite' ? probed.map(given) : [json]
  try {
    return await withTimeout(dialect.run(knex, { sql, bindings: bindings as Knex.Value[] }), probeMs, () => new Error('The probe is late'))
  } catch {
    return null // silent by design: the statement reads no table, so its failure says nothing about one
  }
}

function isRead({ column: { kind }, value }: Probed, full: unknown, empty: unknown): boolean {
  try {
    const read = fromColumn(kind, full)
    const isSame = value instanceof Date ? isSameSecond(read, value) : read === value
    const missing = fromColumn(kind, empty)
    // A missing flag counts as false, and the usual `typeCast` for flags of MySQL makes it false.
    return isSame && (missing === null || (kind === 'boolean' && missing === false))
  } catch {
    return false
  }
}

/** A host's column may store whole seconds. */
function isSameSecond(read: unknown, value: Date): boolean {
  return read instanceof Date && Math.abs(read.getTime() - value.getTime()) < 1000
}

function lost(users: Subject, { column, facts }: Probed): TableFinding {
  const message = `${users.table}.${column.name} (${facts.type}) does not come back through your driver as it was written, so doorward would take one value for another. Remove the setting of your connection that changes this type: a type parser (pg.types.setTypeParser, \`types\`), \`typeCast\`, or postProcessResponse of knex. ${seeTroubleshooting('a-value-cannot-be-read')}`
  return finding(users, column.name, { what: 'read-back', level: 'error', message })
}
