import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Expired } from '../auth-store'
import type { Connection } from './connection'
import type { Dialect } from './dialect'
import type { Row } from './queryable'
import type { Table } from './table'

type EndField = 'expiresAt' | 'createdAt' | 'endsAt' | 'deliveredAt'

type Narrow = (query: Knex.QueryBuilder) => Knex.QueryBuilder

/** Reads the keys along the index on (`end`, `key`). The DELETE repeats the condition, so a row with a later `end` stays. */
export async function deleteExpired<R extends { id: string }>(
  connection: Connection,
  verb: string,
  table: Table<R>,
  end: keyof R & EndField,
  expired: Expired,
  { narrow = (query) => query, key = 'id' }: { narrow?: Narrow; key?: keyof R } = {},
): Promise<number> {
  const where: Narrow = (query) => narrow(query.where(table.column(end), '<=', table.value(end, expired.before as R[typeof end]))) // an instant
  const keys = (await nextEnded(connection, verb, table, end, expired, { where, fields: [key], key })).map((row) =>
    rowKeyOf(table, row, key),
  )
  if (keys.length === 0) return 0
  return connection.statement<number>(verb, (db) => where(db(table.name).whereIn(table.column(key), keys)).delete())
}

/** Has only lower-case letters, because a host's name mapper changes other names. */
const END = 'exactend'

interface Position {
  readonly at: Knex.Value
  readonly id: Knex.Value
}

/** A batch begins after the last row of the one before, not again at rows that stay or that an open snapshot keeps. */
export async function nextEnded<R extends { id: string }>(
  connection: Connection,
  verb: string,
  table: Table<R>,
  end: keyof R & EndField,
  { most, run = {} }: Pick<Expired, 'most' | 'run'>,
  { where, fields = ['id'], key = 'id' }: { where: Narrow; fields?: readonly (keyof R)[]; key?: keyof R },
): Promise<Row[]> {
  const [ended, id] = [table.column(end), table.column(key)]
  const position = run.position as Position | undefined // only this function writes it
  const rows = await connection.statement<Row[]>(verb, (db) => {
    const query = where(db(table.name))
    if (position) whereLater(query, connection.dialect, [ended, position.at], [id, position.id])
    return query
      .orderBy([ended, id])
      .limit(most)
      .select([...table.select(fields), table.selectExactly(end, END)])
  })
  const last = rows.at(-1)
  run.isOver = rows.length < most
  if (last) run.position = { at: last[END], id: rowKeyOf(table, last, key) }
  await nextTurn() // SQLite answers in the same turn of the event loop, so requests would wait for the whole batch
  return rows
}

export function rowKeyOf<R extends { id: string }>(table: Table<R>, row: Row, key: keyof R = 'id'): Knex.Value {
  return table.value(key, table.read(row, key)) as Knex.Value // a key is never null
}

export function whereLater(
  query: Knex.QueryBuilder,
  { comparesRows }: Dialect,
  [first, one]: readonly [string, Knex.Value],
  [second, other]: readonly [string, Knex.Value],
): void {
  if (comparesRows) query.whereRaw('(??, ??) > (?, ?)', [first, second, one, other])
  else query.where((later) => later.where(first, '>', one).orWhere((twin) => twin.where(first, one).where(second, '>', other)))
}
