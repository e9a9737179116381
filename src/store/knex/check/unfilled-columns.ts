import type { Knex } from 'knex'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import { withTimeout } from '../../../core/with-timeout'
import type { TableFinding } from '../../auth-store'
import { type ColumnKind, expressionOf, fromColumn, toColumn } from '../column-values'
import type { Row } from '../queryable'
import { dropNotNull } from './mend'
import type { HostColumns } from './missing-columns'
import { type CheckedColumn, finding, type Subject, spelling } from './subject'
import type { ColumnFacts } from './table-facts'
import type { TableNeeds } from './table-needs'

export function unfilledColumns(subject: Subject, host: HostColumns, needs: TableNeeds): TableFinding[] {
  return [...columnsOfTheHost(subject, host, needs), ...nulledColumns(subject, host), ...keyWithoutValue(subject, host)]
}

function columnsOfTheHost(subject: Subject, { defaults, fields }: HostColumns, needs: TableNeeds): TableFinding[] {
  if (defaults === null) return [unknownDefaults(subject)]
  const { dialect, columns, facts } = subject
  const among = (names: readonly string[], wanted: string) => names.some((name) => spelling(dialect, name) === spelling(dialect, wanted))
  const ours = columns.map(({ name }) => name)
  return facts.columns
    .filter(({ name, isNotNull, isFilled, isGenerated }) => isNotNull && !isFilled && !isGenerated && !among([...ours, ...defaults], name))
    .flatMap(({ name }) => {
      const field = fields.find(({ column, isWritable }) => isWritable && among([column], name))
      if (!field) return [unfilled(subject, name)]
      return needs.makesAccountsOtherwise ? [filledBySignupOnly(subject, name, field.field)] : []
    })
}

function filledBySignupOnly(subject: Subject, column: string, field: string): TableFinding {
  const message = `${subject.table}.${column} is NOT NULL, and only a sign-up fills it (\`users.fields.${field}\`), so a login by a provider cannot create an account. Return a value for it from \`users.insertDefaults\` of createKnexStore() as well, or give the column a default. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, column, { level: 'error', message })
}

function unfilled(subject: Subject, column: string): TableFinding {
  const { record, table } = subject
  const message = `${table}.${column} is NOT NULL, and nothing fills it, so every INSERT fails. Return a value for it from \`${record}.insertDefaults\` of createKnexStore(), or give the column a default; if a trigger fills it, ignore this finding. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, column, { level: 'error', message })
}

function unknownDefaults(subject: Subject): TableFinding {
  const message = `\`${subject.record}.insertDefaults\` threw an error during the check, so doorward could not check ${subject.table} for NOT NULL columns that stay empty. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, null, {
    what: 'insertDefaults',
    level: 'warning',
    message,
    fails: 'An INSERT fails if a NOT NULL column stays empty.',
  })
}

/** Null in some rows only. The value says which operation leaves the field empty. */
const SOMETIMES_NULL: Readonly<Record<string, string>> = {
  name: 'A row without a name cannot be stored.',
  'users.name': 'Sign-up without a name fails.',
  'identities.name': 'A login by a provider that sends no name fails.',
  passwordSetAt: 'Sign-up without a password fails.',
  authenticatedAt: 'A session without a known login cannot be stored.',
  ip: 'A login from an unknown IP address fails.',
  userAgent: 'A login without a User-Agent header fails.',
  provider: 'A login without a provider fails.',
  email: 'A login by a provider that sends no email address fails.',
  emailVerified: 'A login by a provider that does not say whether the email address is verified fails.',
  picture: 'A login by a provider that sends no picture fails.',
}

const NAME_LEFT = 'To remove a name fails.'

function nulledColumns(subject: Subject, { texts }: HostColumns): TableFinding[] {
  return subject.columns.flatMap((column) => {
    const { facts, isNotNull } = column
    const isFilled = texts.some((name) => spelling(subject.dialect, name) === spelling(subject.dialect, column.name))
    return facts?.isNotNull && !facts.isGenerated && !isNotNull ? [nulled(subject, column, facts, isFilled)] : []
  })
}

function nulled(subject: Subject, { field, name }: CheckedColumn, facts: ColumnFacts, isFilled: boolean): TableFinding {
  const path = `${subject.record}.${field}`
  // The store takes no other column of ours from `insertDefaults`.
  const fails = isFilled && path === 'users.name' ? NAME_LEFT : (SOMETIMES_NULL[path] ?? SOMETIMES_NULL[field])
  const isAlways = fails === undefined
  const message = `${subject.table}.${name} is NOT NULL, and doorward writes null into it ${isAlways ? 'in every new row, so every INSERT fails' : 'if the value is unknown, so such an INSERT fails'}. Allow null in the column. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, name, {
    what: 'not-null',
    level: isAlways ? 'error' : 'warning',
    message,
    fails,
    sql: dropNotNull(subject, facts),
  })
}

function keyWithoutValue(subject: Subject, { defaults }: HostColumns): TableFinding[] {
  const id = subject.columns.find(({ field, kind }) => field === 'seq' || (field === 'id' && kind === 'integer key'))
  if (!id?.facts || id.facts.isFilled || defaults === null || (id.field === 'id' && !id.facts.isNotNull)) return []
  if (defaults.some((name) => spelling(subject.dialect, name) === spelling(subject.dialect, id.name))) return []
  const { record, table } = subject
  const message = `${table}.${id.name} is an integer key that the database does not make by itself, so every INSERT fails. Make it auto-increment (on SQLite: INTEGER PRIMARY KEY AUTOINCREMENT), or return it from \`${record}.insertDefaults\`. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return [finding(subject, id.name, { level: 'error', message })]
}

const probeMs = 2_500
const instant = new Date('2026-03-04T05:06:07.089Z')

interface Probed {
  readonly column: CheckedColumn
  readonly facts: ColumnFacts
  readonly alias: string
  readonly value: string | number | boolean | Date
}

/**
 * The host's type parser or `typeCast` may change a value, and a lost instant would mean "no second factor". Reads no row. Does not probe a
 * database that cannot make the values (MariaDB before 10.6).
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

/** Null: the database has no such statement, or is late. */
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
