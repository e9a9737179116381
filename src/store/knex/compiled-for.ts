import type { Knex } from 'knex'
import { Slot } from './column-values'
import { compileOnce, type Statement } from './compile-once'
import type { Tables } from './default-tables'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import type { Row } from './table'

/** `compileOnce` for each set of tables: the verbs of a store are made anew for every transaction, what they say is not. */
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
