import type { Knex } from 'knex'
import { compileOnce, type Statement } from './compile-once'
import type { Tables } from './default-tables'

/** `compileOnce` for each set of tables: the verbs of a store are made anew for every transaction, what they say is not. */
export function compiledFor<Input>(
  build: (db: Knex, tables: Tables) => Knex.QueryBuilder | Knex.Raw,
): (db: Knex, tables: Tables, input: Input) => Statement {
  const compiled = new WeakMap<Tables, (input: Input) => Statement>()
  return (db, tables, input) => {
    const statement = compiled.get(tables) ?? compileOnce<Input>(() => build(db, tables))
    compiled.set(tables, statement)
    return statement(input)
  }
}
