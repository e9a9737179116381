import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { Slot } from './column-values'
import type { Tables } from './default-tables'
import type { Dialect } from './dialect'
import type { Queryable, Row, Statement } from './queryable'

/**
 * Returns a function that compiles a query once for each set of tables, because Knex compiles a query more slowly than the database runs
 * it. Each call of that function supplies the values of the query's slots.
 */
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

/**
 * Returns a function that runs a SELECT and returns the rows. The SELECT is compiled once. If a value of the input is null, there are no
 * rows.
 */
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

/** Returns a function that runs an UPDATE on MySQL and returns the number of rows. The UPDATE is compiled once. */
export function compiledUpdate<Input extends object>(
  fields: readonly (keyof Input)[],
  build: (db: Queryable, tables: Tables, input: Input) => Knex.QueryBuilder,
): (db: Queryable, dialect: Dialect, tables: Tables, input: Input) => Promise<number> {
  const statement = compiledFor<Input>((db, tables) => build(db, tables, slotsOf(fields)))
  return async (db, dialect, tables, input) => {
    if (!answersTexts(db, dialect)) return build(db, tables, input)
    const { sql, bindings } = statement(db, tables, input)
    const [{ affectedRows }] = await db.raw(sql, bindings)
    return affectedRows
  }
}

/**
 * Returns true if the store can read the driver's answer to SQL text. The driver of MySQL answers SQL text with more than a list of rows. A
 * host's `postProcessResponse` could misread such an answer.
 */
function answersTexts({ client }: Queryable, { name }: Dialect): boolean {
  return name !== 'mysql' || !client.config.postProcessResponse
}

/** Returns a slot for each field, for one statement. Tables accept a slot wherever they accept a value. */
export function slotsOf<Input extends object>(fields: readonly (keyof Input)[]): Input {
  const slots = fields.map((field) => [field, new Slot<Input>((input) => input[field])])
  return Object.fromEntries(slots) as Input // tables accept a slot as the value of its field
}

export function compileOnce<Input>(query: Knex.QueryBuilder | Knex.Raw): (input: Input) => Statement {
  const { sql, bindings } = query.toSQL() // the code keeps only these two, because the object holds a connection
  const name = `doorward_${createHash('sha256').update(sql).digest('hex').slice(0, 32)}`
  const values: readonly unknown[] = bindings
  return (input) => ({ name, sql, bindings: values.map((value) => (value instanceof Slot ? value.read(input) : value) as Knex.Value) }) // each value is already converted for its column
}
