import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { Slot } from './column-values'

/** A statement that can be sent: its text for `knex.raw`, and what stands in its places. */
export interface Statement {
  /** Of a text that is sent again and again: the same for the same text, in every process and version. */
  readonly name?: string
  readonly sql: string
  /** The same as the driver takes it: on PostgreSQL with `$1` for the first place. Not where Knex would find a place in it again. */
  readonly native?: string | undefined
  readonly bindings: readonly Knex.Value[]
}

/**
 * A query whose text never changes, compiled once, for any number of runs: to build and compile it takes knex longer than it takes
 * the database to run it. Where it has a slot, each run has a value of its own; one that stands in several places is made once.
 */
export function compileOnce<Input>(query: Knex.QueryBuilder | Knex.Raw): (input: Input) => Statement {
  const { name, sql, native, places, slots } = compile<Input>(query.toSQL()) // and nothing else of it, which holds a connection
  return (input) => {
    const values = slots.map((slot) => slot.read(input) as Knex.Value) // what the column's kind makes of it
    return { name, sql, native, bindings: places.map(({ slot, constant }) => (slot < 0 ? constant : (values[slot] ?? null))) }
  }
}

interface Compiled<Input> {
  readonly name: string
  readonly sql: string
  readonly native: string | undefined
  readonly slots: readonly Slot<Input>[]
  /** In the order of the text: which of the slots, or -1 and what always stands there. */
  readonly places: readonly { readonly slot: number; readonly constant: Knex.Value }[]
}

function compile<Input>(query: Knex.Sql): Compiled<Input> {
  const { sql, bindings } = query
  const slots = [...new Set(bindings as readonly unknown[])].filter((value): value is Slot<Input> => value instanceof Slot)
  const placeOf = (value: unknown) => slots.indexOf(value as Slot<Input>) // or it is none of them
  const name = `doorward_${createHash('sha256').update(sql).digest('hex').slice(0, 32)}`
  const native = query.toNative().sql
  return {
    name,
    sql,
    native: native.includes('?') ? undefined : native,
    slots,
    places: bindings.map((value) => ({ slot: placeOf(value), constant: value })),
  }
}
