import type { Knex } from 'knex'
import { ConfigurationError } from '../../core/errors'
import type { UserFilter } from '../auth-store'
import { meetsFilter } from '../meets-filter'
import type { Dialect } from './dialect'
import type { Queryable, Row } from './queryable'
import type { Selected } from './table'
import { isName } from './table-options'

/** A text column with a person's role. A person is an administrator only if the column contains the value of `admin`. */
export interface RoleColumnOptions {
  /** The name of the column. */
  column: string
  /** The value of an administrator. doorward compares it byte for byte. */
  admin: string
  /** The value for a new account, and for a person who stops being an administrator. */
  others: string
}

/** Reads and writes `isAdmin` in a column of roles. */
export interface RoleColumn {
  readonly column: string
  isAdmin(row: Row): boolean
  /** Returns the role for INSERT, and for a record in the form of a row (`asRow`). */
  roleOf(isAdmin: boolean): string
  /**
   * Returns the value for SET. If `isAdmin` is true, the value is the role `admin`. If `isAdmin` is false, only the role `admin` changes
   * (to `others`), and every other role stays.
   */
  change(isAdmin: boolean): Knex.Value | Selected
  where(query: Knex.QueryBuilder, isAdmin: boolean): Knex.QueryBuilder
  whereFilter(query: Knex.QueryBuilder, filter: UserFilter): void
}

/** Binds the options to a table. @param alias the name under which SELECT returns the column */
export function bindRoleColumn(
  { column, admin, others }: RoleColumnOptions,
  { table, alias, knex, dialect }: { table: string; alias: string; knex: Queryable; dialect: Dialect },
): RoleColumn {
  const qualified = `${table}.${column}`
  // Compares bytes, because a collation may treat 'Admin' and 'admin' as equal.
  const isAdminExactly = `${dialect.text.column} = ${dialect.text.value}`
  const exact = { column: qualified, value: admin }
  const role: RoleColumn = {
    column,
    isAdmin: (row) => row[alias] === admin,
    roleOf: (isAdmin) => (isAdmin ? admin : others),
    change: (isAdmin) => (isAdmin ? admin : knex.raw(`case when ${isAdminExactly} then :others else :column: end`, { ...exact, others })),
    where: (query, isAdmin) =>
      isAdmin
        ? query.where(qualified, admin).whereRaw(isAdminExactly, exact)
        : query.where((other) => void other.whereNull(qualified).orWhereRaw(`not (${isAdminExactly})`, exact)),
    whereFilter(query, filter) {
      const wanted = [true, false].filter((isAdmin) => meetsFilter({ isAdmin }, filter))
      if (wanted.length === 0) query.whereRaw('1 = 0')
      if (wanted.length === 1) role.where(query, wanted[0] === true)
    },
  }
  return role
}

/** Checks the option `users.columns.isAdmin`. @throws ConfigurationError with a message that names the option */
export function checkRoleColumn(option: object): void {
  for (const key of Object.keys(option))
    if (!['column', 'admin', 'others'].includes(key)) throw refusal(`.${key} is not an option; known are column, admin, others.`)
  const { column, admin, others } = option as Record<string, unknown> // an object, as its type says
  if (!isName(column) || column.includes('.')) throw refusal('.column must be the name of a column.')
  for (const [key, value] of Object.entries({ admin, others }))
    if (typeof value !== 'string' || value === '')
      throw refusal(`.${key} must be a role, for example '${key === 'admin' ? 'admin' : 'member'}'.`)
  if (admin === others) throw refusal(': admin and others must differ, or everybody would be an administrator.')
}

function refusal(problem: string): ConfigurationError {
  return new ConfigurationError(`createKnexStore(): users.columns.isAdmin${problem}`)
}
