import type { Knex } from 'knex'
import { ValidationError } from '../../errors'
import type { UserListing, UserPage, UserRecord } from '../auth-store'
import { meetsFilter } from '../meets-filter'
import type { Connection } from './connection'
import type { Dialect } from './dialect'
import type { Row, Table } from './table'
import { whereFilter } from './where-filter'

/** One word, as all aliases. */
const AGE = 'usersage'

/** Along (created_at, id): where a page ends, the next begins, so that the database walks over no row that was shown already. */
export async function listUsers(
  connection: Connection,
  users: Table<UserRecord>,
  { filters, after, limit }: UserListing,
): Promise<UserPage> {
  const last = after === null ? null : positionOf(users, after)
  const rows = await connection.statement<Row[]>('users.list', (db) => {
    const query = db(users.name)
    for (const filter of filters) whereFilter(query, users, connection.dialect, filter)
    if (last) whereLater(query, users, connection.dialect, last)
    return query
      .select([...users.selection, users.selectExactly('createdAt', AGE)])
      .orderBy([users.column('createdAt'), users.column('id')])
      .limit(limit + 1) // one more tells whether there is a next page
  })
  const shown = rows.slice(0, limit)
  const end = shown.at(-1)
  // Compared again: a host's collation may have called two keys equal.
  const exact = filters.filter(({ field }) => field === 'id')
  const isAsked = (user: UserRecord) => exact.every((filter) => meetsFilter(user, filter))
  return { users: shown.map(users.toRecord).filter(isAsked), next: end && rows.length > limit ? asText(users, end) : null }
}

/** The instant as the column has it: a host's may be finer than a Date, and would come again on the next page. */
interface Position {
  createdAt: string | number
  id: string
}

function asText(users: Table<UserRecord>, row: Row): string {
  const age = row[AGE]
  return JSON.stringify([typeof age === 'number' || typeof age === 'bigint' ? Number(age) : String(age), users.read(row, 'id')])
}

function positionOf(users: Table<UserRecord>, after: string): Position {
  const [createdAt, id] = parsed(after)
  const isAge = typeof createdAt === 'number' || typeof createdAt === 'string'
  if (isAge && typeof id === 'string' && users.match({ id })) return { createdAt, id }
  throw new ValidationError({ details: { errors: [{ path: 'after', rule: 'unstorable' }] } })
}

function parsed(after: string): unknown[] {
  try {
    const value: unknown = JSON.parse(after)
    return Array.isArray(value) ? value : []
  } catch {
    return [] // refused above, as anything that is no position
  }
}

function whereLater(query: Knex.QueryBuilder, users: Table<UserRecord>, dialect: Dialect, last: Position): void {
  const [age, key, id] = [users.column('createdAt'), users.column('id'), users.value('id', last.id) as Knex.Value] // an id is never null
  if (dialect.comparesRows) query.whereRaw('(??, ??) > (?, ?)', [age, key, last.createdAt, id])
  else query.where((later) => later.where(age, '>', last.createdAt).orWhere((twin) => twin.where(age, last.createdAt).where(key, '>', id)))
}
