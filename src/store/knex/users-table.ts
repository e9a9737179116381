import type { Knex } from 'knex'
import { ConfigurationError } from '../../core/errors'
import type { NewUser, OAuthUser, UserFilter, UserOrigin, UserRecord } from '../auth-store'
import { meetsFilter } from '../meets-filter'
import type { Dialect } from './dialect'
import { type BoundHostFields, bindHostFields, checkHostFields, type HostFieldMap } from './host-fields'
import type { Queryable, Row } from './queryable'
import { type Binding, bindTable, type Selected, type Table, type TableDefinition, type Values } from './table'
import { type ColumnMap, checkTableOptions, isName, type TableOptions } from './table-options'

/** The fields of a user that belong to doorward. */
export type OwnUserFields = Omit<UserRecord, 'fields'>

/** The argument of `insertDefaults` of the users table: the new account. */
export interface InsertedUser {
  /** `command`: your own call of `store.users.insert()` or the `doorward` command inserts the user. */
  readonly by: UserOrigin['by']
  /** Lower-cased. */
  readonly email: string
  readonly name: string | null
  /** The provider's profile of the person, if `by` is `provider`. */
  readonly profile?: OAuthUser
}

/** Which of your columns holds which field. `false`: you have none, only for fields that docs/store.md lists as optional. */
export interface UserColumnMap extends Omit<ColumnMap<OwnUserFields>, 'isAdmin'> {
  /** A boolean column, or a text column of roles. `false`: your service has no administrators. */
  readonly isAdmin?: string | false | RoleColumnOptions
}

/** A users table of your own. The default of each option is as in the default table. */
export interface UsersTableOptions extends Omit<TableOptions<OwnUserFields>, 'columns' | 'insertDefaults'> {
  /** Field of doorward -> your column. `false`: you have no column for the field. docs/store.md lists the fields that can be `false`. */
  columns?: UserColumnMap
  /** Fields of your own. Sign-up and `PATCH /me` write these fields. Every user record contains them under `fields`. */
  fields?: HostFieldMap
  /**
   * Returns values of your own columns for a new row. If the values contain the key, doorward uses this key instead of a UUID. Values that
   * the person entered override the returned values. The column of `name` may be among them, for an account without a name.
   */
  insertDefaults?: (user: InsertedUser) => Record<string, unknown>
}

export interface UsersTable extends Table<UserRecord> {
  /** Null: `isAdmin` has a boolean column, or none. */
  readonly role: RoleColumn | null
  readonly hostFields: BoundHostFields | null
  newUserRow(user: NewUser, origin: UserOrigin): Values
}

export function bindUsersTable(
  definition: TableDefinition<OwnUserFields>,
  given: UsersTableOptions | undefined,
  binding: Binding,
): UsersTable {
  const { fields, insertDefaults, columns = {}, ...rest } = given ?? {}
  const { isAdmin } = columns
  const roleOptions = isRole(isAdmin) ? isAdmin : null
  const base = bindTable(definition, given && { ...rest, columns: withRoleColumn(columns) }, binding)
  const role = roleOptions && bindRoleColumn(roleOptions, { ...binding, table: base.name, alias: base.alias('isAdmin') })
  const adminColumn = base.fields.has('isAdmin') ? base.bareColumn('isAdmin') : null
  const host = fields && Object.keys(fields).length > 0 ? bindHostFields(fields, base.name, columnOwners(base), adminColumn) : null
  const changes = (values: Partial<UserRecord>, toRole: (isAdmin: boolean) => unknown): Values => {
    const { fields, isAdmin } = values
    return Object.assign(
      base.toRow(role ? withoutAdmin(values) : values), // `base` has no column for `fields`
      role && isAdmin !== undefined && { [role.column]: toRole(isAdmin) }, // text, or an expression
      host && fields && host.toRow(fields),
    )
  }
  return {
    ...(base as Table<UserRecord>), // `fields` has several columns, so no code asks `base` for a single column of `fields`
    role,
    hostFields: host,
    hostFillsColumns: insertDefaults !== undefined,
    selection: host ? [...base.selection, ...host.selection] : base.selection,
    toRow: (values) => changes(values, (isAdmin) => role?.change(isAdmin)),
    newUserRow(user, origin) {
      const given = changes(user, (isAdmin) => role?.roleOf(isAdmin))
      // In a new row only `isAdmin` makes an administrator, because an import must not do so by a field.
      if (role && given[role.column] === role.roleOf(true)) given[role.column] = role.roleOf(user.isAdmin)
      if (!role && adminColumn !== null) Object.assign(given, base.toRow({ isAdmin: user.isAdmin }))
      const own = insertDefaults?.({ ...origin, email: user.email, name: user.name })
      const name = user.name === null && base.fields.has('name') ? own?.[base.bareColumn('name')] : undefined
      return base.completeRow(typeof name === 'string' ? { ...given, ...base.toRow({ name }) } : given, own)
    },
    toRecord: (row) => ({
      ...base.toRecord(role ? { ...row, [base.alias('isAdmin')]: role.isAdmin(row) } : row),
      ...(host && { fields: host.read(row) }),
    }),
    asRow({ fields, ...values }) {
      const { isAdmin } = values
      const ofRole: Row = role && isAdmin !== undefined ? { [base.alias('isAdmin')]: role.roleOf(isAdmin) } : {}
      return { ...base.asRow(values), ...ofRole, ...(host && fields && host.asRow(fields)) }
    },
  }
}

function withoutAdmin({ isAdmin: _, ...others }: Partial<UserRecord>): Partial<OwnUserFields> {
  return others
}

function withRoleColumn(columns: NonNullable<UsersTableOptions['columns']>): NonNullable<TableOptions<OwnUserFields>['columns']> {
  const { isAdmin, ...others } = columns
  if (isAdmin === undefined) return others
  return { ...others, isAdmin: isRole(isAdmin) ? isAdmin.column : isAdmin }
}

/** A database ignores the case of column names. */
function columnOwners(table: Table<OwnUserFields>): Map<string, string> {
  return new Map([...table.fields].map((field) => [table.bareColumn(field).toLowerCase(), field]))
}

/** @throws ConfigurationError with a message that names the option */
export function checkUsersOptions(options: unknown, definition: TableDefinition<OwnUserFields>): void {
  const { fields, ...rest } = Object(options) as UsersTableOptions // `options` may be any value
  const isAdmin: unknown = rest.columns?.isAdmin
  checkHostFields(fields, Object.keys(definition.fields))
  if (isRole(isAdmin)) checkRoleColumn(isAdmin)
  const others = rest.columns && isRole(isAdmin) ? { ...rest, columns: withRoleColumn(rest.columns) } : rest
  checkTableOptions('users', isObject(options) ? others : options, definition, ['fields'])
}

function isRole(option: unknown): option is RoleColumnOptions {
  return isObject(option)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text column with a person's role. A person is an administrator only if the column contains the value of `admin`. */
export interface RoleColumnOptions {
  /** The name of the column. */
  column: string
  /** The value of an administrator. doorward compares it byte for byte. */
  admin: string
  /** The value for a new account, and for a person who stops being an administrator. */
  others: string
}

interface RoleColumn {
  readonly column: string
  isAdmin(row: Row): boolean
  roleOf(isAdmin: boolean): string
  /** For SET. True: the role `admin`. False: only the role `admin` changes (to `others`), and every other role stays. */
  change(isAdmin: boolean): Knex.Value | Selected
  where(query: Knex.QueryBuilder, isAdmin: boolean): Knex.QueryBuilder
  whereFilter(query: Knex.QueryBuilder, filter: UserFilter): void
}

/** @param alias the name under which SELECT returns the column */
function bindRoleColumn(
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

/** @throws ConfigurationError with a message that names the option */
function checkRoleColumn(option: object): void {
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
