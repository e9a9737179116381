import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { Slot } from './column-values'
import type { Tables } from './default-tables'
import type { Dialect } from './dialect'
import type { Queryable, Row, Statement } from './queryable'

/**
 * Compiles a query whose text never changes once for each set of tables: to build and compile it takes Knex longer than it takes the
 * database to run it. Where the query has a slot, each run brings a value of its own.
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
 * A SELECT that is compiled once; a null among what is wanted finds nobody. MySQL's is built each time: what its driver answers
 * to a bare text is not a list of rows, as which a host's postProcessResponse may take it.
 */
export function compiledSelect<Input extends object>(
  fields: readonly (keyof Input)[],
  build: (db: Queryable, tables: Tables, input: Input) => Knex.QueryBuilder,
): (db: Queryable, dialect: Dialect, tables: Tables, input: Input) => Promise<Row[]> {
  const statement = compiledFor<Input>((db, tables) => build(db, tables, slotsOf(fields)))
  return async (db, dialect, tables, input) => {
    if (fields.some((field) => input[field] === null)) return []
    return dialect.returning ? dialect.run(db, statement(db, tables, input)) : build(db, tables, input)
  }
}

/** For one statement: a slot in the place of each field. A table takes one wherever it takes a value. */
export function slotsOf<Input extends object>(fields: readonly (keyof Input)[]): Input {
  const slots = fields.map((field) => [field, new Slot<Input>((input) => input[field])])
  return Object.fromEntries(slots) as Input // as it says
}

export function compileOnce<Input>(query: Knex.QueryBuilder | Knex.Raw): (input: Input) => Statement {
  const { sql, bindings } = query.toSQL() // and nothing else of it, which holds a connection
  const name = `doorward_${createHash('sha256').update(sql).digest('hex').slice(0, 32)}`
  const values: readonly unknown[] = bindings
  return (input) => ({ name, sql, bindings: values.map((value) => (value instanceof Slot ? value.read(input) : value) as Knex.Value) }) // what the column's kind makes of it
}
