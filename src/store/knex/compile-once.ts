import type { Knex } from 'knex'
import { Slot } from './column-values'

/** A statement that can be sent: its text for `knex.raw`, and what stands in its places. */
export interface Statement {
  readonly sql: string
  readonly bindings: readonly Knex.Value[]
}

/**
 * A query whose text never changes, built and compiled the first time only: that takes knex longer than it takes the
 * database to run it. Where `build` put a slot, each run has a value of its own.
 */
export function compileOnce<Input>(build: () => Knex.QueryBuilder | Knex.Raw): (input: Input) => Statement {
  let compiled: Statement | null = null
  return (input) => {
    compiled ??= build().toSQL()
    return { sql: compiled.sql, bindings: compiled.bindings.map((value) => (isSlot<Input>(value) ? toValue(value, input) : value)) }
  }
}

function isSlot<Input>(value: unknown): value is Slot<Input> {
  return value instanceof Slot
}

function toValue<Input>(slot: Slot<Input>, input: Input): Knex.Value {
  return slot.read(input) as Knex.Value // what the column's kind makes of it
}
