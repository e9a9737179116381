import type { Knex } from 'knex'
import type { FilterableUserField, UserFilter, UserFilterValue, UserRecord } from '../auth-store'
import type { Dialect } from './dialect'
import type { Table } from './table'
import type { UsersTable } from './users-table'

/** Adds a filter to a query. Column names come only from the table, and values are always bound. */
export function whereFilter(query: Knex.QueryBuilder, users: UsersTable, dialect: Dialect, filter: UserFilter): void {
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
      // Groups the conditions, because SQLite limits the depth of nested conditions. Without groups, several long lists would be nested.
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

/** Returns the first text (by code points) after all texts that begin with `text`. Returns null if `text` is empty or ends in U+10FFFF. */
function textAfter(text: string): string | null {
  const characters = [...text]
  const last = characters.pop()?.codePointAt(0)
  if (last === undefined || last >= 0x10ffff) return null
  const next = last + 1
  return characters.join('') + String.fromCodePoint(next >= 0xd800 && next <= 0xdfff ? 0xe000 : next)
}

/**
 * Returns false if the column cannot hold the value, for example a key of another form or a text with NUL. PostgreSQL would fail at such a
 * value. The other databases would find no row.
 */
function canBe(users: Table<UserRecord>, field: FilterableUserField, value: UserFilterValue): boolean {
  return users.match({ [field]: value }) !== null
}

function isText(field: FilterableUserField): boolean {
  return field === 'email' || field === 'name'
}
