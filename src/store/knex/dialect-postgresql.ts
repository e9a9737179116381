import { asciiLowerCase } from '../../core/ascii-lower-case'
import { quotedPath } from './check/quote'
import { readPostgresqlTable } from './check/read-postgresql'
import type { Dialect } from './dialect'
import type { Queryable, Row } from './queryable'
import { rowsOf, runPrepared } from './run-prepared'

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
  transaction: { isolationLevel: 'read committed' },
  beforeRead: [],
  beforeCommit: [],
  async withSchemaLock(db, work) {
    // The host's lock_timeout is meant for rows. Here we wait for another process, so we turn the timeout off. The lock's number is
    // arbitrary, but must never change between versions of this library.
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

/**
 * Inserts the rows from one JSON value. PostgreSQL converts the JSON values to the types of the columns. If the statement had thousands of
 * placeholders, Knex and the driver would need ten times as long as the database.
 */
async function insertFree(db: Queryable, table: string, rows: readonly Row[], column: string): Promise<string[]> {
  const names = Object.keys(rows[0] ?? {})
  const list = names.map(() => '??').join(', ')
  const sql = `insert into ?? (${list}) select ${list} from json_populate_recordset(null::??, ?) on conflict do nothing returning ??::text as free`
  const inserted = rowsOf(await db.raw(sql, [table, ...names, ...names, table, JSON.stringify(rows), column]))
  return inserted.map((row) => String(row['free']))
}
