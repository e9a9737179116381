import { findByAddress } from '../../accounts/email-links/find-by-address'
import type { AuthContext } from '../../context'
import { asciiLowerCase } from '../../core/ascii-lower-case'
import type { AuthStore } from '../../store/auth-store'
import { type Migrations, migrationsOf } from '../../store/knex/migrations'
import { adminUserBody } from '../admin-user'
import { createUser, type UserCreation } from '../create-user'
import { findUser } from '../find-user'
import { listUsers, type UserListQuery } from '../list-users'
import { purgeNow } from '../purge/purge-now'
import { type ExportOptions, exportUsers, type UserExport } from './export-users'
import { type ImportOptions, importUsers, type UserImporter } from './import-users'

/** An account in the form of `GET /admin/users/:id`. */
export type UserBody = { readonly id: string; readonly email: string } & object

/**
 * The actions of the command that the service has no method for. The results are plain values, because the command may come from another
 * copy of the package.
 */
export interface Operations {
  /** Null if the store is an adapter of the host. */
  readonly migrations: Migrations | null
  /** Deletes expired rows. Returns the number of deleted rows for each table. */
  purge(): Promise<Record<string, number>>
  /** Finds an account by id or address; null if there is no such account. */
  findUser(who: string): Promise<UserBody | null>
  listUsers(query: UserListQuery): Promise<{ items: UserBody[]; next_cursor: string | null }>
  /** Creates an account. `set_password_url` is null if the account has a password, or if the app has no page for the link. */
  createUser(input: UserCreation): Promise<{ user: UserBody; set_password_url: string | null; is_mailed: boolean }>
  importUsers(options: ImportOptions): Promise<UserImporter>
  exportUsers(options: ExportOptions): UserExport
}

/**
 * Creates the operations of a router.
 * @param hostStore the store as the host passed it. It does not wait for the check of the tables, because the command creates the tables
 */
export function createOperations(ctx: AuthContext, hostStore: AuthStore): Operations {
  const bodyOf = (user: Parameters<typeof adminUserBody>[1]) => adminUserBody(ctx.store.users, user) as UserBody // the body has both fields
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
