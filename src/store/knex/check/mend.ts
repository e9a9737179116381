import type { Dialect } from '../dialect'
import { quotedName, quotedPath } from './quote'
import type { Subject } from './subject'
import type { ColumnFacts } from './table-facts'

/**
 * Returns a statement that adds a column, for a person to run. The functions from here to `addForeignKey` also return such a statement, or
 * null if the database has no statement for the change.
 */
export function addColumn(subject: Subject, column: string, definition: string): string {
  return `alter table ${table(subject)} add column ${name(subject, column)} ${definition}`
}

/** Returns the statement that gives a column another type. On PostgreSQL, `using` computes the new value from the old one. */
export function changeType(subject: Subject, column: ColumnFacts, type: string, using?: (value: string) => string): string | null {
  switch (subject.dialect.name) {
    case 'postgresql':
      return alterType(subject, column, type, using)
    case 'mysql':
      return modify(subject, column, type, column.isNotNull)
    default:
      return null
  }
}

export function dropNotNull(subject: Subject, column: ColumnFacts): string | null {
  switch (subject.dialect.name) {
    case 'postgresql':
      return `alter table ${table(subject)} alter column ${name(subject, column.name)} drop not null`
    case 'mysql':
      return modify(subject, column, column.type, false)
    default:
      return null
  }
}

export function addUniqueRule(subject: Subject, columns: readonly string[]): string {
  return addIndex(subject, columns, 'unique')
}

export function addIndex(subject: Subject, columns: readonly string[], unique: 'unique' | '' = ''): string {
  const list = columns.map((column) => name(subject, column)).join(', ')
  const kind = unique ? 'unique index' : 'index'
  switch (subject.dialect.name) {
    case 'postgresql': // PostgreSQL chooses a name, and allows writes meanwhile
      return `create ${kind} concurrently on ${table(subject)} (${list})`
    case 'mysql':
      return `alter table ${table(subject)} add ${kind} (${list})`
    default:
      return `create ${kind} ${indexName(subject, columns, unique)} on ${bareTable(subject)} (${list})`
  }
}

export function addForeignKey(subject: Subject, column: string, users: { table: string; key: string }): string | null {
  if (subject.dialect.name === 'sqlite') return null
  const referred = `${quotedPath(users.table, mark(subject.dialect))} (${name(subject, users.key)})`
  return `alter table ${table(subject)} add foreign key (${name(subject, column)}) references ${referred} on delete cascade`
}

export function table({ table, dialect }: Subject): string {
  return quotedPath(table, mark(dialect))
}

export function name({ dialect }: Subject, column: string): string {
  return quotedName(column, mark(dialect))
}

function mark({ name }: Dialect): '"' | '`' {
  return name === 'mysql' ? '`' : '"'
}

/**
 * Returns a statement that changes the type. If `using` converts the values, the statement first drops the default, because the default has
 * the old type. At its end, it sets the converted default.
 */
function alterType(
  subject: Subject,
  { name: column, fallback, isFilled }: ColumnFacts,
  type: string,
  using?: (value: string) => string,
): string {
  const alter = `alter column ${name(subject, column)}`
  const change = `${alter} type ${type}${using ? ` using ${using(name(subject, column))}` : ''}`
  const hasFallback = using !== undefined && isFilled && fallback !== null
  const steps = hasFallback ? [`${alter} drop default`, change, `${alter} set default ${using(`(${fallback})`)}`] : [change]
  return `alter table ${table(subject)} ${steps.join(', ')}`
}

/**
 * Returns a MODIFY statement. It repeats every attribute of the column, because MODIFY drops each attribute that the statement does not
 * name.
 */
function modify(
  subject: Subject,
  { name: column, family, charset, fallback, extra }: ColumnFacts,
  type: string,
  isNotNull: boolean,
): string {
  const isText = family === 'text' && /char|text/i.test(type) && !/collate/i.test(type)
  const parts = [
    ...(isText && charset ? [`character set ${charset}`] : []),
    isNotNull ? 'not null' : 'null',
    ...(fallback === null ? [] : [`default ${fallback}`]),
    ...(extra ? [extra] : []),
  ]
  return `alter table ${table(subject)} modify column ${name(subject, column)} ${[type, ...parts].join(' ')}`
}

/** Returns the name of the index. SQLite expects the schema before the index's name, and no schema before the table's name. */
function indexName({ table, dialect }: Subject, columns: readonly string[], unique: string): string {
  const [last = '', schema] = table.split('.').reverse()
  const index = [last, ...columns, unique ? 'unique' : 'index'].join('_')
  return quotedPath(schema === undefined ? index : `${schema}.${index}`, mark(dialect))
}

function bareTable({ table, dialect }: Subject): string {
  return quotedName(table.split('.').at(-1) ?? table, mark(dialect))
}
