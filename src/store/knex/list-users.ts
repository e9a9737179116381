import type { Knex } from 'knex'
import { ValidationError } from '../../core/errors'
import type { UserListing, UserPage, UserRecord } from '../auth-store'
import { meetsFilter } from '../meets-filter'
import type { Connection } from './connection'
import { whereLater } from './next-ended'
import type { Row } from './queryable'
import type { Selected, Table } from './table'
import type { UsersTable } from './users-table'
import { whereFilter } from './where-filter'

/** The alias of the exact `createdAt`. Has only lower-case letters, because a host's name mapper changes other names. */
const AGE = 'usersage'

/** Lists users by (created_at, id). A page begins after the last row of the previous page, so the database reads no row twice. */
export async function selectUsers(connection: Connection, users: UsersTable, { filters, after, limit }: UserListing): Promise<UserPage> {
  const last = after === null ? null : positionOf(users, after)
  const { dialect } = connection
  const whole = [...users.selection, users.selectExactly('createdAt', AGE)]
  const isIdsFirst = dialect.listsIdsFirst && filters.length > 0
  const found = await connection.statement<Row[]>('users.list', (db) => {
    const query = db(users.name)
    for (const filter of filters) whereFilter(query, users, dialect, filter)
    if (last) whereLater(query, dialect, [users.column('createdAt'), last.createdAt], [users.column('id'), last.id])
    return byAge(users, query.select(isIdsFirst ? users.select(['id']) : whole)).limit(limit + 1) // one more shows whether there is a next page
  })
  const rows = isIdsFirst ? await wholeRows(connection, users, whole, found) : found
  const presented = rows.slice(0, limit)
  const end = presented.at(-1)
  // Compares the ids again in code, because a host's collation may treat two keys as equal.
  const exact = filters.filter(({ field }) => field === 'id')
  const isAsked = (user: UserRecord) => exact.every((filter) => meetsFilter(user, filter))
  return { users: presented.map(users.toRecord).filter(isAsked), next: end && found.length > limit ? asText(users, end) : null }
}

/** Reads the rows that have the found ids. Omits a row that was deleted meanwhile. */
async function wholeRows(connection: Connection, users: UsersTable, whole: readonly Selected[], found: readonly Row[]): Promise<Row[]> {
  if (found.length === 0) return []
  const ids = found.map((row) => users.value('id', users.read(row, 'id')) as Knex.Value) // an id is never null
  return connection.statement<Row[]>('users.list', (db) =>
    byAge(
      users,
      db(users.name)
        .whereIn(users.column('id'), ids)
        .select([...whole]),
    ),
  )
}

function byAge(users: UsersTable, query: Knex.QueryBuilder): Knex.QueryBuilder {
  return query.orderBy([users.column('createdAt'), users.column('id')])
}

/**
 * The position where a page ended. Contains the instant with every digit that the column stores. A Date has only milliseconds. With a Date,
 * the last row of a page could therefore appear again on the next page.
 */
interface Position {
  createdAt: string | number
  id: Knex.Value
}

function asText(users: Table<UserRecord>, row: Row): string {
  const age = row[AGE]
  return JSON.stringify([typeof age === 'number' || typeof age === 'bigint' ? Number(age) : String(age), users.read(row, 'id')])
}

function positionOf(users: Table<UserRecord>, after: string): Position {
  const [createdAt, id] = parsed(after)
  const isAge = typeof createdAt === 'number' || typeof createdAt === 'string'
  if (isAge && typeof id === 'string' && users.match({ id })) return { createdAt, id: users.value('id', id) as Knex.Value } // an id is never null
  throw new ValidationError({ details: { errors: [{ path: 'after', rule: 'unstorable' }] } })
}

function parsed(after: string): unknown[] {
  try {
    const value: unknown = JSON.parse(after)
    return Array.isArray(value) ? value : []
  } catch {
    return [] // `positionOf` refuses the empty list, like every text that is not a position
  }
}
