import type { Queryable } from '../queryable'
import { type ColumnFacts, type IndexFacts, noFacts, type TableFacts, type TypeFamily } from './table-facts'

// Each alias has only lower-case letters, because a host's name mapper changes other names.
const query = `
select 'table' as part, table_type as name, @@sql_mode as a, '' as b, '' as c, '' as d, '' as e, '' as f, '' as g, '' as h
  from information_schema.tables where table_schema = :schema and table_name = :table
union all
select 'column', column_name, column_type, data_type, cast(character_maximum_length as char), is_nullable,
       cast(column_default as char), extra, concat(character_set_name, ' collate ', collation_name), cast(generation_expression as char)
  from information_schema.columns where table_schema = :schema and table_name = :table
union all
select 'index', column_name, index_name, cast(non_unique as char), cast(seq_in_index as char), '', '', '', '', ''
  from information_schema.statistics where table_schema = :schema and table_name = :table
union all
select 'reference', column_name, constraint_name, '', '', '', '', '', '', ''
  from information_schema.key_column_usage
  where table_schema = :schema and table_name = :table and referenced_table_name is not null`

const fields = ['part', 'name', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const

type Found = Readonly<Record<(typeof fields)[number], string | null>>

/** Reads information_schema, which shows only what the role may access. */
export async function readMysqlTable(db: Queryable, path: string): Promise<TableFacts> {
  const [table = '', schema] = path.split('.').reverse()
  const found = db.raw(`(${query}) as facts`, { table, schema: schema ?? db.raw('database()') })
  // The query builder sends the query, because the driver answers raw SQL with more than a list of rows. A host's `postProcessResponse`
  // could misread such an answer.
  const rows: Found[] = await db.queryBuilder().select(fields).from(found)
  const of = (part: string) => rows.filter((row) => row.part === part)
  const [kind] = of('table')
  if (!kind) return noFacts('missing')
  if (kind.name !== 'BASE TABLE') return noFacts('view')
  const isStrict = /STRICT_(TRANS|ALL)_TABLES/.test(kind.a ?? '')
  return {
    kind: 'table',
    columns: of('column').map((row) => columnFacts(row, isStrict)),
    indexes: grouped(of('index')).map(indexFacts),
    references: grouped(of('reference')).map((keys) => keys.map(({ name }) => name ?? '')),
  }
}

function columnFacts(
  { name, a: type, b: base, c: length, d: nullable, e, f: extra, g: charset, h: expression }: Found,
  isStrict: boolean,
): ColumnFacts {
  const isGenerated = (expression ?? '') !== ''
  const fallback = e === 'NULL' ? null : e
  const family = base === 'bit' && type === 'bit(1)' ? 'boolean' : (families.get(base ?? '') ?? 'other')
  const isFilled = fallback !== null || isGenerated || /auto_increment/i.test(extra ?? '')
  return {
    name: name ?? '',
    type: type ?? '',
    family,
    length: family === 'text' && length !== null ? Number(length) : null,
    bytes: bytes.get(base ?? '') ?? null,
    isPadded: false, // the database removes the blanks when it returns a row
    isNotNull: nullable === 'NO',
    isFilled: isFilled || !isStrict, // if strict mode is off, the server inserts a default value of its own
    fallback,
    isGenerated,
    lowerOf: /^(?:lower|lcase)\(`([^`]+)`\)$/i.exec(expression ?? '')?.[1] ?? null,
    // Other binary collations ignore trailing blanks, so they still treat different texts as equal.
    looseness: charset === null || /_(nopad|0900)_bin$/.test(charset) ? 'none' : 'any',
    charset: charset ?? '',
    extra: (extra ?? '').replace(/DEFAULT_GENERATED/i, '').trim(),
  }
}

const families: ReadonlyMap<string, TypeFamily> = new Map([
  ...(['tinyint', 'smallint', 'mediumint', 'int', 'bigint'] as const).map((type): [string, TypeFamily] => [type, 'integer']),
  ...(['decimal', 'float', 'double'] as const).map((type): [string, TypeFamily] => [type, 'number']),
  ...(['char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext'] as const).map((type): [string, TypeFamily] => [type, 'text']),
  ...(['binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob'] as const).map((type): [string, TypeFamily] => [type, 'bytes']),
  ...(['datetime', 'timestamp'] as const).map((type): [string, TypeFamily] => [type, 'instant']),
  ...(['date', 'time', 'year'] as const).map((type): [string, TypeFamily] => [type, 'date']),
  ['uuid', 'uuid'],
])

const bytes: ReadonlyMap<string, number> = new Map([
  ['tinyint', 1],
  ['smallint', 2],
  ['mediumint', 3],
  ['int', 4],
  ['bigint', 8],
])

/** Returns the rows of each index, in the order of its columns, or the rows of each foreign key. */
function grouped(rows: readonly Found[]): Found[][] {
  const groups = new Map<string, Found[]>()
  for (const row of rows) groups.set(row.a ?? '', [...(groups.get(row.a ?? '') ?? []), row])
  return [...groups.values()].map((group) => group.sort((one, other) => Number(one.c) - Number(other.c)))
}

function indexFacts(rows: readonly Found[]): IndexFacts {
  return { isUnique: rows[0]?.b === '0', isPartial: false, keys: rows.map(({ name }) => ({ column: name, isLowered: false })) }
}
