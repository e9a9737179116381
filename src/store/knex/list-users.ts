import type { Knex } from 'knex'
import { ValidationError } from '../../core/errors'
import type { FilterableUserField, UserFilter, UserFilterValue, UserListing, UserPage, UserRecord } from '../auth-store'
import { meetsFilter } from '../meets-filter'
import type { Connection } from './connection'
import { whereLater } from './delete-expired'
import type { Dialect } from './dialect'
import type { Row } from './queryable'
import type { Selected, Table } from './table'
import type { UsersTable } from './users-table'

/** Has only lower-case letters, because a host's name mapper changes other names. */
const AGE = 'usersage'

/** A page begins after the last row of the previous page, so the database reads no row twice. */
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
  // A host's collation may treat two keys as equal.
  const exact = filters.filter(({ field }) => field === 'id')
  const isAsked = (user: UserRecord) => exact.every((filter) => meetsFilter(user, filter))
  return { users: presented.map(users.toRecord).filter(isAsked), next: end && found.length > limit ? asText(users, end) : null }
}

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

/** Keeps every digit that the column stores. With a Date, the last row of a page could appear again on the next page. */
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

/** Column names come only from the table, and values are always bound. */
function whereFilter(query: Knex.QueryBuilder, users: UsersTable, dialect: Dialect, filter: UserFilter): void {
  const { field } = filter
  if (users.role && field === 'isAdmin') {
    users.role.whereFilter(query, filter)
    return
  }
  const compare = (on: Knex.QueryBuilder, operator: Comparison, value: UserFilterValue) =>
    whereCompared(on, users, dialect, { field, operator, value })
  switch (filter.operator) {
    case 'isnull':
      query[filter.value ? 'whereNull' : 'whereNotNull'](users.column(field))
      break
    case 'in':
      query.where((any) => {
        any.whereRaw('1 = 0')
        for (const value of filter.value) any.orWhere((one) => compare(one, 'eq', value))
      })
      break
    case 'not_in':
      query.whereNotNull(users.column(field))
      // SQLite limits the depth of nested conditions, so several long lists must not be nested.
      query.where((none) => {
        for (const value of filter.value) compare(none, 'ne', value)
      })
      break
    case 'between':
      compare(query, 'gte', filter.value[0])
      compare(query, 'lte', filter.value[1])
      break
    case 'contains':
    case 'icontains':
    case 'startswith':
    case 'endswith':
      whereFound(query, users, dialect, { field, operator: filter.operator, value: filter.value })
      break
    default:
      compare(query, filter.operator, filter.value)
  }
}

const SIGNS = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const
type Comparison = keyof typeof SIGNS

interface Compared {
  field: FilterableUserField
  operator: Comparison
  value: UserFilterValue
}

function whereCompared(query: Knex.QueryBuilder, users: Table<UserRecord>, dialect: Dialect, { field, operator, value }: Compared): void {
  const column = users.column(field)
  if (!canBe(users, field, value)) {
    query[operator === 'ne' ? 'whereNotNull' : 'whereNull'](operator === 'ne' ? column : users.column('id'))
  } else if (isText(field)) {
    if (operator === 'eq') query.where(column, String(value)) // an index serves this condition
    query.whereRaw(`${dialect.text.column} ${SIGNS[operator]} ${dialect.text.value}`, { column, value: String(value) })
  } else {
    query.where(column, SIGNS[operator], users.value(field, value as UserRecord[typeof field])) // `canBe` checked the value
  }
}

interface Found {
  field: FilterableUserField
  operator: 'contains' | 'icontains' | 'startswith' | 'endswith'
  value: string
}

function whereFound(query: Knex.QueryBuilder, users: Table<UserRecord>, dialect: Dialect, { field, operator, value }: Found): void {
  if (!isText(field) || !canBe(users, field, value)) query.whereNull(users.column('id'))
  else {
    const needle = operator === 'icontains' ? dialect.text.foldedValue(value) : value
    const prefix = `${needle.replaceAll(/[|%_]/g, '|$&')}%`
    query.whereRaw(dialect.text[operator], { column: users.column(field), value: needle, after: textAfter(needle), prefix })
  }
}

/** By code points. Null: `text` is empty or ends in U+10FFFF. */
function textAfter(text: string): string | null {
  const characters = [...text]
  const last = characters.pop()?.codePointAt(0)
  if (last === undefined || last >= 0x10ffff) return null
  const next = last + 1
  return characters.join('') + String.fromCodePoint(next >= 0xd800 && next <= 0xdfff ? 0xe000 : next)
}

/** PostgreSQL would fail at a key of another form or a text with NUL. The other databases would find no row. */
function canBe(users: Table<UserRecord>, field: FilterableUserField, value: UserFilterValue): boolean {
  return users.match({ [field]: value }) !== null
}

function isText(field: FilterableUserField): boolean {
  return field === 'email' || field === 'name'
}
