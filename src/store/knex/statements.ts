import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { quietly } from '../../core/logger'
import { Slot } from './column-values'
import type { Tables } from './default-tables'
import type { Dialect } from './dialect'
import { senderOf } from './direct-statements'
import { driverCodeIn } from './driver-errors'
import type { Queryable, Row, Statement } from './queryable'
import type { Selected, Table } from './table'

/** Compiles once for each set of tables, because Knex compiles a query more slowly than the database runs it. */
export function compiledFor<Input>(
  build: (db: Queryable, tables: Tables) => Knex.QueryBuilder | Knex.Raw,
): (db: Queryable, tables: Tables, input: Input) => Statement {
  const compiled = new WeakMap<Tables, (input: Input) => Statement>()
  return (db, tables, input) => {
    const statement = compiled.get(tables) ?? compileOnce<Input>(build(db, tables))
    compiled.set(tables, statement)
    return statement(input)
  }
}

export function compiledSelect<Input extends object>(
  fields: readonly (keyof Input)[],
  build: (db: Queryable, tables: Tables, input: Input) => Knex.QueryBuilder,
): (db: Queryable, dialect: Dialect, tables: Tables, input: Input) => Promise<Row[]> {
  const statement = compiledFor<Input>((db, tables) => build(db, tables, slotsOf(fields)))
  return async (db, dialect, tables, input) => {
    if (fields.some((field) => input[field] === null)) return []
    return answersTexts(db, dialect) ? dialect.run(db, statement(db, tables, input)) : build(db, tables, input)
  }
}

/** Only MySQL needs it: the others return the changed rows. */
export function compiledUpdate<Input extends object>(
  fields: readonly (keyof Input)[],
  build: (db: Queryable, tables: Tables, input: Input) => Knex.QueryBuilder,
): (db: Queryable, dialect: Dialect, tables: Tables, input: Input) => Promise<number> {
  const statement = compiledFor<Input>((db, tables) => build(db, tables, slotsOf(fields)))
  return async (db, dialect, tables, input) => {
    if (!answersTexts(db, dialect)) return build(db, tables, input)
    const [{ affectedRows }] = await answerOfMysql(db, statement(db, tables, input))
    return affectedRows
  }
}

/** The driver of MySQL answers SQL text with more than a list of rows. A host's `postProcessResponse` could misread such an answer. */
function answersTexts({ client }: Queryable, { name }: Dialect): boolean {
  return name !== 'mysql' || !client.config.postProcessResponse
}

/** Tables accept a slot wherever they accept a value. */
export function slotsOf<Input extends object>(fields: readonly (keyof Input)[]): Input {
  const slots = fields.map((field) => [field, new Slot<Input>((input) => input[field])])
  return Object.fromEntries(slots) as Input // tables accept a slot as the value of its field
}

function compileOnce<Input>(query: Knex.QueryBuilder | Knex.Raw): (input: Input) => Statement {
  const compiled = query.toSQL() // the code keeps only texts and values of it, because the object holds a connection
  const { sql, bindings } = compiled
  const text = compiled.toNative().sql
  const name = `doorward_${createHash('sha256').update(sql).digest('hex').slice(0, 32)}`
  const values: readonly unknown[] = bindings
  return (input) => ({
    name,
    sql,
    text,
    bindings: values.map((value) => (value instanceof Slot ? value.read(input) : value) as Knex.Value),
  }) // each value is already converted for its column
}

interface Preparing {
  /** The host turned named statements off, or a pooler lost a statement. */
  isOff: boolean
  readonly names: Set<string>
}

const preparing = new WeakMap<object, Preparing>()

/** A connection keeps them until it closes. A host with a store for each tenant may have many more than the usual ten. */
const mostNames = 200

/** A host needs this if its connection pooler runs each statement on another connection. */
export function neverPrepare(knex: Knex): void {
  preparingOf(knex).isOff = true
}

/** PostgreSQL plans a named statement once per connection. In a host's transaction it has no name: an error of the name would end it. */
export async function runPrepared(db: Queryable, statement: Statement): Promise<Row[]> {
  return rowsOf(await (db.isTransaction ? send(db, statement) : sendPrepared(db, statement)))
}

/** Through Knex, the driver of MySQL prepares nothing. @returns the rows, or the counts of a change, in a list */
export async function answerOfMysql(db: Queryable, statement: Statement) {
  return senderOf(db) ? sendPrepared(db, statement) : send(db, statement)
}

/** Answers as the driver does. */
export function send(db: Queryable, { sql, text, bindings }: Statement, name?: string) {
  const directly = text === undefined ? null : senderOf(db)
  if (directly && text !== undefined) return directly(text, bindings, name)
  const query = db.raw(sql, bindings)
  return name === undefined ? query : query.options({ name })
}

async function sendPrepared(db: Queryable, statement: Statement) {
  const { name } = statement
  if (!name || !mayPrepare(db, name)) return send(db, statement)
  try {
    return await send(db, statement, name)
  } catch (error) {
    const reason = reasons.get(codeOf(error))
    if (!reason) throw error
    const answer = await send(db, statement)
    stopPreparing(db, reason) // the statement succeeded without its name, so the name caused the error
    return answer
  }
}

/** For a transaction of our own. It knows no pool, so the names are counted for `pool`. */
export function runNamedOn(pool: Queryable): Dialect['run'] {
  return async (db, statement) => {
    const { name } = statement
    return rowsOf(await send(db, statement, name && mayPrepare(pool, name) ? name : undefined))
  }
}

/** Runs a transaction of our own once more, without names, after an error of a name, because such an error ends a transaction. */
export async function repeatWithoutNames<T>(pool: Queryable, named: () => Promise<T>, unnamed: () => Promise<T>): Promise<T> {
  try {
    return await named()
  } catch (error) {
    const reason = lostName(error)
    if (!reason) throw error
    const result = unnamed()
    const again = await result.then(() => null, lostName)
    if (!again) stopPreparing(pool, reason) // else the error has another cause than the name
    return result
  }
}

/** Null: the error of the store has another cause than the name of a statement. */
export function lostName(error: unknown): string | null {
  return reasons.get(driverCodeIn(error)) ?? null
}

function preparingOf({ client }: Queryable): Preparing {
  const known = preparing.get(client) ?? { isOff: false, names: new Set() }
  preparing.set(client, known)
  return known
}

function mayPrepare(db: Queryable, name: string): boolean {
  const { isOff, names } = preparingOf(db)
  if (isOff) return false
  if (names.size < mostNames) names.add(name)
  return names.has(name)
}

/** A host's `postProcessResponse` may already have extracted the rows. */
export function rowsOf(answer: Row[] | { rows: Row[] }): Row[] {
  return Array.isArray(answer) ? answer : answer.rows
}

function stopPreparing(db: Queryable, reason: string): void {
  const known = preparingOf(db)
  if (known.isOff) return
  known.isOff = true
  quietly(() => db.client.logger.warn(`doorward: ${reason} From now on this process prepares no statements; see docs/store.md.`))
}

const lost =
  'a prepared statement was lost between doorward and PostgreSQL. If a pooler in transaction mode is between them, set `preparedStatements: false` in createKnexStore().'

const unprepared = 'MySQL or MariaDB did not prepare a statement.'

/** The database did not run the statement because of its name (PostgreSQL manual, appendix A), or did not prepare it. */
const reasons: ReadonlyMap<unknown, string> = new Map([
  ['26000', lost], // the connection does not know the name
  ['42P05', lost], // the connection has another statement of this name
  ['0A000', 'a column of a prepared statement has changed its type.'],
  ['ER_MAX_PREPARED_STMT_COUNT_REACHED', unprepared],
  ['ER_UNSUPPORTED_PS', unprepared],
  ['ER_UNKNOWN_STMT_HANDLER', unprepared],
  ['ER_NEED_REPREPARE', unprepared],
  ['ER_WRONG_ARGUMENTS', unprepared], // MySQL 8 accepts no number of the driver in LIMIT
])

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : null
}

/** Afterwards the rows should not match `condition`, so exactly one caller gets a row. Call it in `Connection.guarded`. */
export async function updateReturning<R extends { id: string }>(
  db: Queryable,
  dialect: Dialect,
  table: Table<R>,
  condition: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
  changes: Partial<R>,
  fields: readonly Selected[] = table.selection,
): Promise<Row[]> {
  if (!dialect.returning) return lockThenUpdate(db, table, condition, changes, fields)
  return condition(db(table.name))
    .update(table.toRow(changes))
    .returning([...fields])
}

/** A locking read waits for the row's lock and sees the new values (InnoDB, at every isolation level). */
async function lockThenUpdate<R extends { id: string }>(
  db: Queryable,
  table: Table<R>,
  condition: (query: Knex.QueryBuilder) => Knex.QueryBuilder,
  changes: Partial<R>,
  fields: readonly Selected[],
): Promise<Row[]> {
  const id = table.select(['id'])
  const rows: Row[] = await condition(db(table.name))
    .select([...new Set([...fields, ...id])])
    .forUpdate()
  if (rows.length === 0) return []
  const ids = rows.map((row) => table.value('id', table.read(row, 'id')))
  await db(table.name).whereIn(table.column('id'), ids).update(table.toRow(changes))
  return rows.map((row) => ({ ...row, ...table.asRow(changes) }))
}
