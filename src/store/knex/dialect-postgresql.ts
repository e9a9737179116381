import { asciiLowerCase } from '../../core/ascii-lower-case'
import { beginWithin } from './begin-within'
import { quotedPath } from './check/read-table'
import { type ColumnFacts, type IndexFacts, type IndexKey, noFacts, type TableFacts, type TypeFamily } from './check/table-facts'
import type { Dialect } from './dialect'
import type { Queryable, Row } from './queryable'
import { rowsOf, runPrepared } from './statements'

export const postgresql: Dialect = {
  name: 'postgresql',
  writesInWith: true,
  returning: true,
  least: 'least',
  rowLocks: true,
  countsMatchedRows: true,
  // With the cast, PostgreSQL compares the values as text, even if the column has the type citext.
  exactText: '?? = cast(? as text) collate "C"',
  types: { id: 'uuid', bigint: 'bigint', text: 'text', indexedText: 'text', boolean: 'boolean', instant: 'timestamptz(3)' },
  // The instant is text in UTC, because the driver would write local time with an offset. The local time and the offset can disagree.
  instantToColumn: (instant) => instant.toISOString(),
  // JSON always has the ISO form, whatever DateStyle and the driver's type parsers are. The driver reads another DateStyle as null.
  instantExpression: "to_json(??) #>> '{}'",
  integerKeyExpression: null,
  insertFree,
  run: runPrepared,
  booleanToColumn: (value) => value,
  namesStatements: true,
  transaction: { isolationLevel: 'read committed' },
  beginWithin,
  beforeRead: [],
  beforeCommit: [],
  async withSchemaLock(db, work) {
    // The host's lock_timeout is for rows, so it is off while we wait for a process. The lock's number must never change between versions.
    const [usual] = rowsOf(await db.raw("select current_setting('lock_timeout') as usual, set_config('lock_timeout', '0', true)"))
    await db.raw('select pg_advisory_xact_lock(7303917261)')
    await db.raw("select set_config('lock_timeout', ?, true)", [String(usual?.['usual'])])
    await work()
  },
  tableOptions: async () => '',
  async columnType(db, table, column) {
    const answer = await db.raw(
      'select format_type(atttypid, atttypmod) as type from pg_attribute where attrelid = to_regclass(?) and attname = ? and not attisdropped',
      [quotedPath(table, '"'), column],
    )
    const [found] = rowsOf(answer)
    return found ? String(found['type']) : null
  },
  async mayUse(db, table) {
    const [name = '', schema = null] = table.split('.').reverse()
    const answer = await db.raw(
      `select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relname = ? and (n.nspname = ? or (cast(? as text) is null and pg_table_is_visible(c.oid)))
         and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'delete')`,
      [name, schema, schema],
    )
    return rowsOf(answer).length > 0
  },
  readTable: readPostgresqlTable,
  indexesInTable: false,
  buildsIndexesConcurrently: true,
  async hasTable(db, table) {
    return rowsOf(await db.raw('select 1 where to_regclass(?) is not null', [quotedPath(table, '"')])).length > 0
  },
  async hasIndex(db, table, index) {
    const answer = await db.raw(
      `select 1 from pg_index i join pg_class c on c.oid = i.indexrelid
       where i.indrelid = to_regclass(?) and c.relname = ?
         and (i.indisvalid or exists (select 1 from pg_stat_progress_create_index p where p.index_relid = i.indexrelid))`,
      [quotedPath(table, '"'), index],
    )
    return rowsOf(answer).length > 0
  },
  exactInstantExpression: `to_char(?? at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
  listsIdsFirst: false,
  comparesRows: true,
  // In collation "C", lower() changes only ASCII letters.
  text: {
    column: 'cast(:column: as text) collate "C"',
    value: 'cast(:value as text)',
    contains: 'strpos(cast(:column: as text) collate "C", :value) > 0',
    // The range can use an index. If the value ends in U+10FFFF, the range matches too many rows, so `strpos` checks the text again.
    startswith:
      'cast(:column: as text) collate "C" >= :value and (cast(:after as text) is null or cast(:column: as text) collate "C" < :after) and strpos(cast(:column: as text) collate "C", :value) = 1',
    endswith: 'right(cast(:column: as text) collate "C", length(cast(:value as text))) = cast(:value as text)',
    icontains: 'strpos(lower(cast(:column: as text) collate "C"), :value) > 0',
    foldedValue: asciiLowerCase,
  },
}

/** PostgreSQL converts the JSON values. For thousands of placeholders, Knex and the driver need ten times as long. */
async function insertFree(db: Queryable, table: string, rows: readonly Row[], column: string): Promise<string[]> {
  const names = Object.keys(rows[0] ?? {})
  const list = names.map(() => '??').join(', ')
  const sql = `insert into ?? (${list}) select ${list} from json_populate_recordset(null::??, ?) on conflict do nothing returning ??::text as free`
  const inserted = rowsOf(await db.raw(sql, [table, ...names, ...names, table, JSON.stringify(rows), column]))
  return inserted.map((row) => String(row['free']))
}

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

/** Needs PostgreSQL 12 or later. */
async function readPostgresqlTable(db: Queryable, table: string): Promise<TableFacts> {
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

function columnInLower(text: string): string | null {
  const [, inside] = /^lower\((.*)\)$/.exec(text) ?? []
  return inside === undefined ? null : plainName(inside.replace(/::[a-z ]+$/, '').replace(/^\((.*)\)$/, '$1'))
}

function plainName(text: string): string | null {
  if (/^[\w$]+$/.test(text)) return text
  return /^"(?:[^"]|"")+"$/.test(text) ? text.slice(1, -1).replaceAll('""', '"') : null
}
