import type { Knex } from 'knex'
import { ConfigurationError, ServiceUnavailableError } from '../../core/errors'
import { type ColumnFacts, type IndexFacts, noFacts, type TableFacts, type TypeFamily } from './check/table-facts'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import { answerOfMysql } from './statements'

// A cast, because MySQL has deprecated the operator BINARY. Converts to utf8mb4 first: the host may use another character set.
const BYTES_OF_COLUMN = 'cast(convert(:column: using utf8mb4) as binary)'
const BYTES_OF_VALUE = 'cast(convert(:value using utf8mb4) as binary)'

/** MariaDB, and MySQL 8 according to its manual. Only MariaDB is tested. */
export const mysql: Dialect = {
  name: 'mysql',
  writesInWith: false,
  insertFree: null,
  returning: false,
  least: 'least',
  rowLocks: true,
  // mysql2 requests CLIENT_FOUND_ROWS, but the host may have switched that off. An UPDATE then counts only the changed rows.
  countsMatchedRows: false,
  exactText: null,
  // An instant is a DATETIME, because a TIMESTAMP ends in 2038, and the session's time zone changes its values.
  types: {
    id: 'varchar(36)',
    sequence: 'bigint not null auto_increment primary key',
    bigint: 'signed',
    text: 'longtext',
    indexedText: 'varchar(255)',
    boolean: 'boolean',
    instant: 'datetime(3)',
  },
  // The instant is text, because the driver would write a Date in the time zone of its option `timezone`.
  instantToColumn: (instant) => instant.toISOString().slice(0, -1).replace('T', ' '),
  // The instant is text, because the driver would read it as local time. When clocks go forward, one hour of local time does not exist.
  instantExpression: "date_format(??, '%Y-%m-%dT%H:%i:%s.%fZ')",
  integerKeyExpression: 'cast(?? as char)',
  run: async (db, statement) => (await answerOfMysql(db, statement))[0],
  booleanToColumn: (value) => (value ? 1 : 0),
  namesStatements: false,
  transaction: { isolationLevel: 'read committed' },
  beginWithin: null,
  beforeRead: [],
  beforeCommit: [],
  withSchemaLock,
  tableOptions,
  columnType,
  mayUse: async (db, table) => (await readMysqlTable(db, table)).kind !== 'missing', // the catalogue hides tables that the connection may not use
  readTable: readMysqlTable,
  indexesInTable: true,
  buildsIndexesConcurrently: false,
  async hasTable(db, table) {
    const [name = '', schema] = table.split('.').reverse()
    const found = await db('information_schema.tables')
      .where({ table_name: name })
      .where('table_schema', schema ?? db.raw('database()'))
      .select(db.raw('1'))
      .limit(1)
    return found.length > 0
  },
  async hasIndex(db, table, index) {
    const [name = '', schema] = table.split('.').reverse()
    const found = await db('information_schema.statistics')
      .where({ table_name: name, index_name: index })
      .where('table_schema', schema ?? db.raw('database()'))
      .select(db.raw('1'))
      .limit(1)
    return found.length > 0
  },
  exactInstantExpression: "date_format(??, '%Y-%m-%d %H:%i:%s.%f')",
  listsIdsFirst: true,
  comparesRows: false,
  text: {
    column: BYTES_OF_COLUMN,
    value: BYTES_OF_VALUE,
    contains: `locate(${BYTES_OF_VALUE}, ${BYTES_OF_COLUMN}) > 0`,
    // LIKE can use an index. In a collation that ignores case, LIKE matches too many rows, so `locate` checks the bytes.
    startswith: `:column: like :prefix escape '|' and locate(${BYTES_OF_VALUE}, ${BYTES_OF_COLUMN}) = 1`,
    endswith: `right(${BYTES_OF_COLUMN}, length(${BYTES_OF_VALUE})) = ${BYTES_OF_VALUE}`,
    // Ignores the case of ASCII letters alone. A collation ignores more, and lower() has no effect on bytes.
    icontains: 'convert(:column: using utf8mb4) collate utf8mb4_bin regexp :value',
    foldedValue: asciiFoldingPattern,
  },
}

/** A letter matches both cases, and every other ASCII character matches only itself. */
function asciiFoldingPattern(value: string): string {
  return [...value].map(patternOf).join('')
}

function patternOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (/^[a-z]$/i.test(character)) return `[${character.toLowerCase()}${character.toUpperCase()}]`
  return code < 128 ? `\\x{${code.toString(16)}}` : character
}

// One lock a database. md5 shortens the name to at most 64 characters. The connection holds the lock: CREATE TABLE commits the transaction.
const LOCK_NAME = "concat('doorward.', md5(coalesce(database(), '')))"

async function withSchemaLock(db: Queryable, work: () => Promise<void>): Promise<void> {
  const [[lock]] = await db.raw(`select get_lock(${LOCK_NAME}, 60) as granted`)
  if (Number(lock.granted) !== 1) throw new ServiceUnavailableError()
  try {
    await work()
  } finally {
    await db.raw(`select release_lock(${LOCK_NAME})`)
  }
}

/**
 * Other collations treat some of 'AbC', 'abc' and 'AbC ' as equal, so two people could share a subject. MariaDB (10.2) and MySQL (8.0.17)
 * name this collation differently.
 */
async function tableOptions(db: Queryable): Promise<string> {
  const wanted = ['utf8mb4_nopad_bin', 'utf8mb4_0900_bin']
  const [found] = await db('information_schema.collations').whereIn('collation_name', wanted).select({ name: 'collation_name' })
  if (!found) throw new ConfigurationError(`The database knows neither ${wanted.join(' nor ')}; use MariaDB 10.2, MySQL 8.0.17 or later.`)
  return `engine = InnoDB default character set utf8mb4 collate ${found.name}`
}

async function columnType(db: Queryable, table: string, column: string): Promise<string | null> {
  const [found] = await columnsOf(db, table)
    .where('column_name', column)
    .select({ type: 'column_type', charset: 'character_set_name', collation: 'collation_name' })
  if (!found) return null
  return found.charset ? `${found.type} character set ${found.charset} collate ${found.collation}` : found.type
}

function columnsOf(db: Queryable, table: string): Knex.QueryBuilder {
  const [name = '', schema] = table.split('.').reverse()
  return db('information_schema.columns')
    .where('table_schema', schema ?? db.raw('database()'))
    .where('table_name', name)
}

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
async function readMysqlTable(db: Queryable, path: string): Promise<TableFacts> {
  const [table = '', schema] = path.split('.').reverse()
  const found = db.raw(`(${query}) as facts`, { table, schema: schema ?? db.raw('database()') })
  // The driver answers raw SQL with more than a list of rows, which a host's `postProcessResponse` could misread.
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

function grouped(rows: readonly Found[]): Found[][] {
  const groups = new Map<string, Found[]>()
  for (const row of rows) groups.set(row.a ?? '', [...(groups.get(row.a ?? '') ?? []), row])
  return [...groups.values()].map((group) => group.sort((one, other) => Number(one.c) - Number(other.c)))
}

function indexFacts(rows: readonly Found[]): IndexFacts {
  return { isUnique: rows[0]?.b === '0', isPartial: false, keys: rows.map(({ name }) => ({ column: name, isLowered: false })) }
}
