import type { NewUser, OAuthUser, UserOrigin, UserRecord } from '../auth-store'
import { type BoundHostFields, bindHostFields, checkHostFields, type HostFieldMap } from './host-fields'
import { bindRoleColumn, checkRoleColumn, type RoleColumn, type RoleColumnOptions } from './role-column'
import { type Binding, bindTable, type Row, type Table, type TableDefinition, type Values } from './table'
import { type ColumnMap, checkTableOptions, type TableOptions } from './table-options'

/** The fields of a user that are ours. */
export type OwnUserFields = Omit<UserRecord, 'fields'>

/** For whom a row is inserted, as `insertDefaults` of the users table is told. */
export interface InsertedUser {
  /** `command`: by `store.users.insert()` of your own, or by a command line. */
  readonly by: UserOrigin['by']
  /** Lower-cased. */
  readonly email: string
  readonly name: string | null
  /** What the provider says of the person, where `by` is `provider`. */
  readonly profile?: OAuthUser
}

/**
 * Which of your columns holds which of our fields of a user. `false`: you have none, for the fields that docs/store.md lists as
 * optional.
 */
export interface UserColumnMap extends Omit<ColumnMap<OwnUserFields>, 'isAdmin'> {
  /** A column of booleans, a text column of roles, or `false`: there are no administrators. */
  readonly isAdmin?: string | false | RoleColumnOptions
}

/** A users table of your own. What is not given is as in the default table. */
export interface UsersTableOptions extends Omit<TableOptions<OwnUserFields>, 'columns' | 'insertDefaults'> {
  /** Our field -> your column; `false`: you have none, for the fields docs/store.md lists as optional. */
  columns?: UserColumnMap
  /** Fields of your own, which signup and `PATCH /me` write and every user record holds under `fields`. */
  fields?: HostFieldMap
  /** Columns of your own that need a value in a new row; a key given here is used instead of a UUID. What the person gave wins. */
  insertDefaults?: (user: InsertedUser) => Record<string, unknown>
}

/** The users table, with what a host may have made of it. */
export interface UsersTable extends Table<UserRecord> {
  /** Null: `isAdmin` is a boolean of its own, or has no column. */
  readonly role: RoleColumn | null
  /** Null: no field of the host's. */
  readonly hostFields: BoundHostFields | null
  /** A whole row for INSERT. */
  newUserRow(user: NewUser, origin: UserOrigin): Values
}

export function bindUsersTable(definition: TableDefinition<OwnUserFields>, options: UsersTableOptions, binding: Binding): UsersTable {
  const { fields, insertDefaults, columns = {}, ...rest } = options
  const { isAdmin } = columns
  const roleOptions = isRole(isAdmin) ? isAdmin : null
  const base = bindTable(definition, { ...rest, columns: withRoleColumn(columns) }, binding)
  const role = roleOptions && bindRoleColumn(roleOptions, { ...binding, table: base.name, alias: base.alias('isAdmin') })
  const host = fields && Object.keys(fields).length > 0 ? bindHostFields(fields, base.name, columnOwners(base)) : null
  const changes = (values: Partial<UserRecord>, toRole: (isAdmin: boolean) => unknown): Values => {
    const { fields, isAdmin } = values
    return Object.assign(
      base.toRow(role ? withoutAdmin(values) : values), // which has no column for `fields`
      role && isAdmin !== undefined && { [role.column]: toRole(isAdmin) }, // text, or an expression
      host && fields && host.toRow(fields),
    )
  }
  return {
    ...(base as Table<UserRecord>), // of `fields`, which has no single column, nobody asks it
    role,
    hostFields: host,
    hostFillsColumns: insertDefaults !== undefined,
    selection: host ? [...base.selection, ...host.selection] : base.selection,
    toRow: (values) => changes(values, (isAdmin) => role?.change(isAdmin)),
    newUserRow(user, origin) {
      const given = changes(user, (isAdmin) => role?.roleOf(isAdmin))
      const own = insertDefaults?.({ ...origin, email: user.email, name: user.name })
      return base.completeRow(given, own)
    },
    toRecord: (row) => ({
      ...base.toRecord(row),
      ...(role && { isAdmin: role.isAdmin(row) }),
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

/** Our columns in lower case, which to a database are the same, and whose they are. */
function columnOwners(table: Table<OwnUserFields>): Map<string, string> {
  return new Map([...table.fields].map((field) => [table.bareColumn(field).toLowerCase(), field]))
}

/** @throws ConfigurationError in a sentence that names the option */
export function checkUsersOptions(options: unknown, definition: TableDefinition<OwnUserFields>): void {
  const { fields, ...rest } = Object(options) as UsersTableOptions // whatever was passed
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
