import { asciiLowerCase } from '../../core/ascii-lower-case'
import { quotedName } from './check/read-table'
import { type ColumnFacts, type IndexFacts, noFacts, type TableFacts, type TypeFamily } from './check/table-facts'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import { send } from './statements'

export const sqlite: Dialect = {
  name: 'sqlite',
  writesInWith: false,
  insertFree: null,
  returning: true,
  least: 'min',
  rowLocks: false,
  countsMatchedRows: true,
  exactText: '?? = ? collate binary',
  types: {
    id: 'varchar(36)',
    sequence: 'integer not null primary key autoincrement',
    bigint: 'integer',
    text: 'text',
    indexedText: 'text',
    boolean: 'boolean',
    instant: 'integer',
  },
  instantToColumn: (instant) => instant.getTime(),
  instantExpression: null,
  integerKeyExpression: 'cast(?? as text)',
  run: async (db, statement) => send(db, statement),
  booleanToColumn: (value) => (value ? 1 : 0),
  namesStatements: false,
  transaction: {},
  beginWithin: null,
  // Begins again with the write lock. A read before the first write could end in SQLITE_BUSY_SNAPSHOT or a deadlock.
  beforeRead: ['COMMIT;', 'BEGIN IMMEDIATE;'],
  // SQLite may refuse a COMMIT and stay in the transaction. So we commit before Knex can return the connection to its pool.
  beforeCommit: ['COMMIT;', 'BEGIN;'],
  withSchemaLock: null,
  tableOptions: async () => '',
  async columnType(db, table, column) {
    const [found] = await db.raw('select type from pragma_table_info(?) where name = ?', [table, column])
    return found ? found.type || 'blob' : null
  },
  mayUse: async (db, table) => (await readSqliteTable(db, table)).kind !== 'missing',
  readTable: readSqliteTable,
  indexesInTable: false,
  buildsIndexesConcurrently: false,
  async hasTable(db, table) {
    return (await db.raw("select 1 from sqlite_master where type in ('table', 'view') and name = ?", [table])).length > 0
  },
  async hasIndex(db, table, index) {
    const found = await db.raw("select 1 from sqlite_master where type = 'index' and tbl_name = ? and name = ?", [table, index])
    return found.length > 0
  },
  exactInstantExpression: null,
  listsIdsFirst: true,
  comparesRows: true,
  // instr() and substr() ignore collations. lower() changes only ASCII letters.
  text: {
    column: '(:column: collate binary)',
    value: ':value',
    contains: 'instr(:column:, :value) > 0',
    startswith: 'instr(:column:, :value) = 1',
    endswith: 'substr(:column:, length(:column:) - length(:value) + 1) = :value',
    icontains: 'instr(lower(:column:), :value) > 0',
    foldedValue: asciiLowerCase,
  },
}

interface Found {
  part: 'table' | 'column' | 'index' | 'reference'
  name: string | null
  a: string | null
  b: string | number | null
  c: string | number | null
  d: string | number | null
  e: string | null
}

const queryOf = (schema: string, args: string): string => `
select 'table' as part, l.type as name, m.sql as a, l.strict as b, l.wr as c, null as d, null as e
  from pragma_table_list l left join ${schema}sqlite_master m on m.type = 'table' and m.name = l.name
  where lower(l.name) = lower(:table) and (:schema is null or l.schema = :schema)
union all
select 'column', name, type, "notnull", pk, hidden, dflt_value from pragma_table_xinfo(${args})
union all
select * from (
  select 'index', x.name, l.name, l."unique", l.partial, x.seqno, m.sql
  from pragma_index_list(${args}) l
  join pragma_index_xinfo(l.name${args.includes(',') ? ', :schema' : ''}) x
  left join ${schema}sqlite_master m on m.type = 'index' and m.name = l.name
  where x.key = 1 order by l.name, x.seqno)
union all
select 'reference', "from", cast(id as text), seq, null, null, null from pragma_foreign_key_list(${args})`

/** Needs SQLite 3.37 or later. */
async function readSqliteTable(db: Queryable, path: string): Promise<TableFacts> {
  const [table = '', schema] = path.split('.').reverse()
  const query = schema === undefined ? queryOf('', ':table') : queryOf(`${quotedName(schema, '"')}.`, ':table, :schema')
  const rows = (await db.raw<Found[]>(query, { table, schema: schema ?? null })).map(withNumbers)
  const of = (part: Found['part']) => rows.filter((row) => row.part === part)
  const [found] = of('table')
  if (!found) return noFacts('missing')
  if (found.name !== 'table') return noFacts('view')
  const columns = of('column').filter(({ d: hidden }) => hidden !== 1)
  return {
    kind: 'table',
    columns: columns.map((row) => columnFacts(row, found, columns)),
    indexes: [...primaryKey(columns), ...grouped(of('index')).map(indexFacts)],
    references: grouped(of('reference')).map((keys) => keys.map(({ name }) => name ?? '')),
  }
}

/** With `defaultSafeIntegers` of the driver, integers come as bigint. */
function withNumbers(row: Found): Found {
  const entries = Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value])
  return Object.fromEntries(entries)
}

function columnFacts({ name, a, b: notNull, c: place, d: hidden, e }: Found, table: Found, columns: readonly Found[]): ColumnFacts {
  const type = a ?? ''
  const isRowId = place === 1 && table.c === 0 && /^integer$/i.test(type) && columns.filter((column) => Number(column.c) > 0).length === 1
  const isGenerated = hidden === 2 || hidden === 3
  return {
    name: name ?? '',
    type: type || 'no type',
    family: familyOf(type, table.b === 1),
    length: null, // SQLite ignores the length in VARCHAR(60)
    bytes: null,
    isPadded: false,
    isNotNull: notNull === 1 || Number(place) > 0, // a key counts as NOT NULL, because the store never finds a row with a null key
    isFilled: isRowId || isGenerated || (e !== null && !/^null$/i.test(e)),
    fallback: e,
    isGenerated,
    lowerOf: null,
    looseness: loosenessOf(name ?? '', table.a ?? ''),
    charset: '',
    extra: '',
  }
}

/** The rules of column affinity, in their order (SQLite, Datatypes, section 3.1). */
function familyOf(type: string, isStrict: boolean): TypeFamily {
  if (/int/i.test(type)) return 'integer'
  if (/char|clob|text/i.test(type)) return 'text'
  if (/blob/i.test(type)) return 'bytes'
  return type === '' || (isStrict && /^any$/i.test(type)) ? 'untyped' : 'number'
}

/** Reads the text of CREATE TABLE, because no pragma shows the collation of a column. */
function loosenessOf(column: string, sql: string): ColumnFacts['looseness'] {
  const name = `["\`[]?${column.replace(/\W/g, '\\$&')}["\`\\]]?`
  const [, collation] = new RegExp(`[(,\\s]${name}\\s[^,]*collate\\s+["\`]?(nocase|rtrim)`, 'i').exec(sql) ?? []
  return collation === undefined ? 'none' : 'any'
}

/** SQLite lists no index for a primary key that is the row id. */
function primaryKey(columns: readonly Found[]): IndexFacts[] {
  const keys = columns.filter(({ c }) => Number(c) > 0).sort((one, other) => Number(one.c) - Number(other.c))
  return keys.length === 0 ? [] : [{ isUnique: true, isPartial: false, keys: keys.map(({ name }) => ({ column: name, isLowered: false })) }]
}

function grouped(rows: readonly Found[]): Found[][] {
  const groups = new Map<string, Found[]>()
  for (const row of rows) groups.set(row.a ?? '', [...(groups.get(row.a ?? '') ?? []), row])
  return [...groups.values()]
}

function indexFacts(rows: readonly Found[]): IndexFacts {
  const [first] = rows
  const sql = first?.e ?? ''
  const columnInLower = /\(\s*lower\(\s*["`[]?([^"`\])]+?)["`\]]?\s*\)\s*(?:collate \w+)?\s*\)/i.exec(sql)?.[1] ?? null
  const isNeverNull = /\bwhere\s+\(?\s*\S+\s+is\s+not\s+null\s*\)?\s*$/i.test(sql)
  return {
    isUnique: first?.b === 1,
    isPartial: first?.c === 1 && !isNeverNull,
    keys: rows.map(({ name }) =>
      name === null && rows.length === 1
        ? { column: columnInLower, isLowered: columnInLower !== null }
        : { column: name, isLowered: false },
    ),
  }
}
