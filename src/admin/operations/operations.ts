import { findByAddress } from '../../accounts/email-links/email-link'
import type { AuthContext } from '../../context'
import { asciiLowerCase } from '../../core/ascii-lower-case'
import { hasPassword } from '../../passwords/verify-password'
import type { AuthStore, UserRecord } from '../../store/auth-store'
import { type Migrations, migrationsOf } from '../../store/knex/migrations'
import { adminUserBody, findUser } from '../change-user'
import { createUser, type UserCreation } from '../create-user'
import { filterableFields, listUsers, parseFilters, type UserListQuery } from '../list-users'
import { purgeNow } from '../purge/purge-now'
import { type ImportOptions, importUsers, type UserImporter } from './import-users'

/** As `GET /admin/users/:id` returns it. */
export type UserBody = { readonly id: string; readonly email: string } & object

/** What the service has no method for. The results are plain values: the command may come from another copy of the package. */
export interface Operations {
  /** Null if the store is an adapter of the host. */
  readonly migrations: Migrations | null
  purge(): Promise<Record<string, number>>
  findUser(who: string): Promise<UserBody | null>
  listUsers(query: UserListQuery): Promise<{ items: UserBody[]; next_cursor: string | null }>
  /** `set_password_url` is null if the account has a password, or if the app has no page for the link. */
  createUser(input: UserCreation): Promise<{ user: UserBody; set_password_url: string | null; is_mailed: boolean }>
  importUsers(options: ImportOptions): Promise<UserImporter>
  exportUsers(options: ExportOptions): UserExport
}

/** @param hostStore does not wait for the check of the tables, because the command creates the tables */
export function createOperations(ctx: AuthContext, hostStore: AuthStore): Operations {
  const bodyOf = (user: Parameters<typeof adminUserBody>[1]) => adminUserBody(ctx, user) as UserBody // the body has both fields
  return {
    migrations: migrationsOf(hostStore),
    purge: () => purgeNow(ctx, hostStore),
    async findUser(who) {
      const id = who.includes('@') ? (await findByAddress(ctx, asciiLowerCase(who.trim())))?.id : who
      const user = id === undefined ? null : await findUser(ctx, id)
      return user && bodyOf(user)
    },
    async listUsers(query) {
      const { items, nextCursor } = await listUsers(ctx, query)
      return { items: items.map(bodyOf), next_cursor: nextCursor }
    },
    async createUser(input) {
      const { user, link } = await createUser(ctx, input)
      return { user: bodyOf(user), set_password_url: link?.url ?? null, is_mailed: link !== null && ctx.mailQueue !== null }
    },
    importUsers: (options) => importUsers(ctx, hostStore, options),
    exportUsers: (options) => exportUsers(ctx, options),
  }
}

export interface ExportOptions {
  readonly filters: Readonly<Record<string, string>>
  /** Also the host's private fields. */
  readonly withHashes: boolean
}

/** The oldest first, in the form that the import reads. */
export interface UserExport {
  readonly fields: readonly string[]
  rows(): AsyncIterable<readonly Readonly<Record<string, unknown>>[]>
}

const pageSize = 500

/** @throws UnknownFilterKeyError, InvalidFilterValueError */
export function exportUsers(ctx: AuthContext, { filters, withHashes }: ExportOptions): UserExport {
  const { users } = ctx.store
  const parsed = parseFilters(Object.entries(filters), filterableFields(ctx))
  const hostFields = [...(users.hostFields ?? [])].flatMap(([name, { private: isPrivate }]) => (isPrivate && !withHashes ? [] : [name]))
  const columns: readonly (readonly [name: string, read: (user: UserRecord) => unknown])[] = [
    ['id', (user) => user.id],
    ['email', (user) => user.email],
    ['name', (user) => user.name],
    ['is_active', (user) => user.isActive],
    ['is_admin', (user) => user.isAdmin],
    ['email_verified', (user) => user.emailVerifiedAt !== null],
    ['created_at', (user) => user.createdAt.toISOString()],
    ...(withHashes ? [['password_hash', (user: UserRecord) => (hasPassword(user) ? user.hashedPassword : null)] as const] : []),
    ...hostFields.map((name) => [name, (user: UserRecord) => user.fields?.[name] ?? null] as const),
  ]
  return {
    fields: columns.map(([name]) => name),
    async *rows() {
      for (let after: string | null = null; ; ) {
        const page: { users: UserRecord[]; next: string | null } = await users.list({ filters: parsed, after, limit: pageSize })
        yield page.users.map((user) => Object.fromEntries(columns.map(([name, read]) => [name, read(user)])))
        if (page.next === null) return
        after = page.next
      }
    },
  }
}
