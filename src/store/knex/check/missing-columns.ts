import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import type { HostTables } from '../default-tables'
import { databaseName, type Queryable } from '../queryable'
import { addColumn, addForeignKey, addIndex, addUniqueRule } from './mend'
import { type CheckedColumn, columnsNamed, finding, type Subject, spelling } from './subject'
import type { IndexFacts } from './table-facts'

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

/** Null: the existing rows need a value, but there is no correct value. */
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

/** An existing account becomes active, with a hash that no password matches. */
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

/** If two requests insert one value at once, only a unique rule stops the second request. */
export function missingUniqueRules(subject: Subject): TableFinding[] {
  return subject.expected.unique.flatMap((rule) => {
    const columns = columnsNamed(subject, rule)
    return columns ? missingUniqueRule(subject, rule.join(), columns) : []
  })
}

/** Without these rules, two accounts could have one address, or a token, identity or session could belong to two people. */
const VITAL: ReadonlySet<string> = new Set(['email', 'provider,subject', 'token_hash'])

function missingUniqueRule(subject: Subject, rule: string, columns: readonly CheckedColumn[]): TableFinding[] {
  const serving = subject.facts.indexes.filter((index) => index.isUnique && isRuleOf(subject, index, columns))
  if (serving.some(({ isPartial }) => !isPartial)) return []
  const isVital = VITAL.has(rule)
  const names = columns.map(({ name }) => name)
  const isPartial = serving.length > 0
  const lack = isPartial
    ? `has a unique index that does not contain every row, so two rows can have the same`
    : `has no unique rule, so two requests at once can store the same twice`
  const message = `${subject.table} (${names.join(', ')}) ${lack}. Add a unique index. If two rows have the same value already, decide by hand which row stays. ${seeTroubleshooting('a-unique-rule-is-missing')}`
  const level = isVital && !isPartial ? 'error' : 'warning'
  return [
    finding(subject, names, {
      what: 'unique',
      level,
      message,
      fails: 'Two requests at once can store one value twice.',
      sql: addUniqueRule(subject, names),
    }),
  ]
}

/** A unique index over only some of the columns is stricter, so it enforces the rule too. */
function isRuleOf(subject: Subject, { keys }: IndexFacts, columns: readonly CheckedColumn[]): boolean {
  return keys.length > 0 && keys.every((key) => columns.some((column) => isKey(subject, key, column)))
}

function isKey({ dialect, facts }: Subject, key: IndexFacts['keys'][number], column: CheckedColumn): boolean {
  if (key.column === null) return false
  const same = (one: string) => spelling(dialect, one) === spelling(dialect, column.name)
  const generated = facts.columns.find(({ name }) => spelling(dialect, name) === spelling(dialect, key.column ?? ''))?.lowerOf
  const isLowered = key.isLowered || generated != null
  return (!isLowered || column.field === 'email') && same(generated ?? key.column)
}

export function missingIndexes(subject: Subject): TableFinding[] {
  const { facts, record, columns } = subject
  // The indexes of the users table serve only the list of users, which only administrators see.
  const isListed = record !== 'users' || columns.some(({ field }) => field === 'isAdmin')
  if (!isListed) return []
  return subject.expected.indexes.flatMap((index) => {
    const wanted = columnsNamed(subject, index)
    const [first] = wanted ?? []
    if (!wanted || !first) return []
    if (facts.indexes.some(({ isPartial, keys }) => !isPartial && keys[0] && isKey(subject, keys[0], first))) return []
    const names = wanted.map(({ name }) => name)
    const message = `${subject.table} has no index that begins with ${first.name}${names.length > 1 ? `, for example over ${names.join(', ')}` : ''}, so each search by ${first.name} reads the whole table. ${seeTroubleshooting('an-index-is-missing')}`
    return [
      finding(subject, first.name, {
        what: 'index',
        level: 'warning',
        message,
        fails: `A search by ${first.name} gets slower with every row.`,
        sql: addIndex(subject, names),
      }),
    ]
  })
}

export function missingForeignKeys(subject: Subject, users: Subject): TableFinding[] {
  const userId = subject.columns.find(({ field }) => field === 'userId')
  const key = users.columns.find(({ field }) => field === 'id')
  if (!subject.expected.refersToUsers || !userId?.facts || !key || users.facts.kind !== 'table') return []
  const same = (name: string) => spelling(subject.dialect, name) === spelling(subject.dialect, userId.name)
  if (subject.facts.references.some((columns) => columns.some(same))) return []
  const message = `${subject.table}.${userId.name} has no foreign key to ${users.table}, so rows of a deleted account stay. ${seeTroubleshooting('a-foreign-key-is-missing')}`
  const sql = addForeignKey(subject, userId.name, { table: users.table, key: key.name })
  return [
    finding(subject, userId.name, { what: 'foreign-key', level: 'warning', message, fails: 'The rows of a deleted account stay.', sql }),
  ]
}

export interface HostColumns {
  /** Columns that `insertDefaults` fills. Null: unknown. */
  readonly defaults: readonly string[] | null
  /** Columns of `defaults` that got a text for an account without a name. */
  readonly texts: readonly string[]
  readonly fields: readonly HostColumn[]
}

interface HostColumn {
  readonly field: string
  readonly column: string
  readonly isWritable: boolean
}

/** Calls `insertDefaults` once. */
export function hostColumnsOf(knex: Queryable, hostTables: HostTables, { record }: Subject): HostColumns {
  const fields = Object.entries((record === 'users' && hostTables.users?.fields) || {}).map(([field, option]): HostColumn => {
    const { column, readOnly = false } = typeof option === 'string' ? { column: option } : option
    return { field, column: databaseName(knex, column), isWritable: !readOnly }
  })
  try {
    const made: unknown = defaultsOf(hostTables, record)
    const values = Object.entries(Object(made)).map(([column, value]) => ({ column: databaseName(knex, column), value }))
    return {
      defaults: values.map(({ column }) => column),
      texts: values.filter(({ value }) => typeof value === 'string').map(({ column }) => column),
      fields,
    }
  } catch {
    return { defaults: null, texts: [], fields } // the function may need data that only a request has
  }
}

function defaultsOf(hostTables: HostTables, record: Subject['record']): unknown {
  if (record === 'users') return hostTables.users?.insertDefaults?.({ by: 'signup', email: 'check@doorward.invalid', name: null })
  const options = hostTables[record]
  return options === false ? undefined : options?.insertDefaults?.()
}

export function missingHostColumns(subject: Subject, { defaults, fields }: HostColumns): TableFinding[] {
  const known = new Set(subject.facts.columns.map(({ name }) => spelling(subject.dialect, name)))
  // The store never sends values of `insertDefaults` for a column of ours, whatever the case of the name.
  const ours = new Set(subject.columns.map(({ name }) => name.toLowerCase()))
  const named = [
    ...fields.map(({ field, column }) => ({ column, option: `users.fields.${field}` })),
    ...(defaults ?? [])
      .filter((column) => !ours.has(column.toLowerCase()))
      .map((column) => ({ column, option: `${subject.record}.insertDefaults` })),
  ]
  return named
    .filter(({ column }) => !known.has(spelling(subject.dialect, column)))
    .map(({ column, option }) => missingColumn(subject, column, option))
}

function missingColumn(subject: Subject, column: string, option: string): TableFinding {
  const message = `The table ${subject.table} has no column ${column}, which \`${option}\` of createKnexStore() names, so statements with it fail. Add the column, or correct the option. ${seeTroubleshooting('a-column-is-missing')}`
  return finding(subject, column, { level: 'error', message })
}
