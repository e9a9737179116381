import type { Queryable } from '../queryable'
import { rowsOf } from '../run-prepared'
import { quotedPath } from './quote'
import { type ColumnFacts, type IndexFacts, type IndexKey, noFacts, type TableFacts, type TypeFamily } from './table-facts'

// The query returns the facts as JSON text, because a host's driver may parse types differently and rename columns.
const query = `
select json_build_object(
  'kind', c.relkind,
  'columns', (
    select json_agg(json_build_object(
      'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'base', coalesce(b.typname, t.typname),
      'modifier', case when b.oid is null then a.atttypmod else t.typtypmod end,
      'notNull', a.attnotnull or t.typnotnull,
      'filled', a.atthasdef or a.attidentity <> '' or t.typdefault is not null,
      'fallback', pg_get_expr(d.adbin, d.adrelid), 'generated', a.attgenerated <> '', 'loose', not l.collisdeterministic))
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_type b on b.oid = t.typbasetype
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    left join pg_collation l on l.oid = a.attcollation
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
  'indexes', (
    select json_agg(json_build_object(
      'unique', i.indisunique, 'condition', pg_get_expr(i.indpred, i.indrelid),
      'keys', (select json_agg(pg_get_indexdef(i.indexrelid, k, true) order by k) from generate_series(1, i.indnkeyatts) k)))
    from pg_index i where i.indrelid = c.oid and i.indisvalid),
  'references', (
    select json_agg((select json_agg(a.attname) from pg_attribute a where a.attrelid = c.oid and a.attnum = any(f.conkey)))
    from pg_constraint f where f.conrelid = c.oid and f.contype = 'f')
)::text as facts from pg_class c where c.oid = to_regclass(?)`

interface Found {
  kind: string
  columns: FoundColumn[] | null
  indexes: { unique: boolean; condition: string | null; keys: string[] }[] | null
  references: string[][] | null
}

interface FoundColumn {
  name: string
  type: string
  base: string
  modifier: number
  notNull: boolean
  filled: boolean
  fallback: string | null
  generated: boolean
  loose: boolean | null
}

/** Reads the catalogue of PostgreSQL 12 and later. */
export async function readPostgresqlTable(db: Queryable, table: string): Promise<TableFacts> {
  const [row] = rowsOf(await db.raw(query, [quotedPath(table, '"')]))
  if (!row) return noFacts('missing')
  const { kind, columns, indexes, references } = JSON.parse(String(row['facts'])) as Found // as the query says
  if (kind !== 'r' && kind !== 'p') return noFacts('view')
  return {
    kind: 'table',
    columns: (columns ?? []).map(columnFacts),
    indexes: (indexes ?? []).map(indexFacts),
    references: references ?? [],
  }
}

function columnFacts({ name, type, base, modifier, notNull, filled, fallback, generated, loose }: FoundColumn): ColumnFacts {
  const isLimited = base === 'varchar' || base === 'bpchar'
  const looseness = base === 'citext' ? 'case' : 'any'
  return {
    name,
    type,
    family: families.get(base) ?? 'other',
    length: isLimited && modifier > 4 ? modifier - 4 : null, // the modifier includes four bytes of header
    bytes: bytes.get(base) ?? null,
    isPadded: base === 'bpchar',
    isNotNull: notNull,
    isFilled: filled,
    fallback,
    isGenerated: generated,
    lowerOf: generated ? columnInLower(fallback ?? '') : null,
    looseness: base === 'citext' || loose ? looseness : 'none',
    charset: '',
    extra: '',
  }
}

const families: ReadonlyMap<string, TypeFamily> = new Map([
  ['bool', 'boolean'],
  ['int2', 'integer'],
  ['int4', 'integer'],
  ['int8', 'integer'],
  ['numeric', 'number'],
  ['float4', 'number'],
  ['float8', 'number'],
  ['text', 'text'],
  ['varchar', 'text'],
  ['bpchar', 'text'],
  ['citext', 'text'],
  ['name', 'text'],
  ['uuid', 'uuid'],
  ['timestamptz', 'instant'],
  ['timestamp', 'zoneless'],
  ['date', 'date'],
  ['time', 'date'],
  ['timetz', 'date'],
  ['bytea', 'bytes'],
])

const bytes: ReadonlyMap<string, number> = new Map([
  ['int2', 2],
  ['int4', 4],
  ['int8', 8],
])

function indexFacts({ unique, condition, keys }: { unique: boolean; condition: string | null; keys: string[] }): IndexFacts {
  return { isUnique: unique, isPartial: condition !== null && !/^\(?\S+ IS NOT NULL\)?$/.test(condition), keys: keys.map(indexKey) }
}

function indexKey(text: string): IndexKey {
  const column = columnInLower(text)
  return column === null ? { column: plainName(text), isLowered: false } : { column, isLowered: true }
}

/** Returns the name of the column in `lower(email)`, `lower((email)::text)` and similar expressions. */
function columnInLower(text: string): string | null {
  const [, inside] = /^lower\((.*)\)$/.exec(text) ?? []
  return inside === undefined ? null : plainName(inside.replace(/::[a-z ]+$/, '').replace(/^\((.*)\)$/, '$1'))
}

function plainName(text: string): string | null {
  if (/^[\w$]+$/.test(text)) return text
  return /^"(?:[^"]|"")+"$/.test(text) ? text.slice(1, -1).replaceAll('""', '"') : null
}
