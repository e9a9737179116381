import { adminUserBody } from '../admin/admin-user'
import { createUser, type UserCreation } from '../admin/create-user'
import { findUser } from '../admin/find-user'
import { listUsers, type UserListQuery } from '../admin/list-users'
import { asciiLowerCase } from '../ascii-lower-case'
import type { AuthContext } from '../context'
import { findByAddress } from '../mailbox/find-by-address'
import type { AuthStore } from '../store/auth-store'
import { type Migrations, migrationsOf } from '../store/knex/migrations'
import { purgeExpired } from '../store/purge-expired'
import { type ExportOptions, exportUsers, type UserExport } from './export-users'
import { type ImportOptions, importUsers, type UserImporter } from './import-users'

/** An account as `GET /admin/users/:id` shows it. */
export type UserBody = { readonly id: string; readonly email: string } & object

/** What the command does to an app that it has loaded, where the service has no verb for it. Plain values only. */
export interface Operations {
  /** Null: the store is an adapter of the host's. */
  readonly migrations: Migrations | null
  /** How many rows of each table were deleted. */
  purge(): Promise<Record<string, number>>
  /** By id or address; null: there is no such account. */
  findUser(who: string): Promise<UserBody | null>
  listUsers(query: UserListQuery): Promise<{ items: UserBody[]; next_cursor: string | null }>
  /** `set_password_url`: null where the account has a password, or no link leads anywhere. */
  createUser(input: UserCreation): Promise<{ user: UserBody; set_password_url: string | null; is_mailed: boolean }>
  importUsers(options: ImportOptions): Promise<UserImporter>
  exportUsers(options: ExportOptions): UserExport
}

/** @param hostStore as the host gave it: its tables can be made before they can be checked */
export function createOperations(ctx: AuthContext, hostStore: AuthStore): Operations {
  const bodyOf = (user: Parameters<typeof adminUserBody>[1]) => adminUserBody(ctx.store.users, user) as UserBody // it has both
  return {
    migrations: migrationsOf(hostStore),
    purge: () => purgeExpired(ctx.store, { logger: ctx.logger }),
    async findUser(who) {
      const id = who.includes('@') ? (await findByAddress(ctx, asciiLowerCase(who)))?.id : who
      const user = id === undefined ? null : await findUser(ctx, id)
      return user && bodyOf(user)
    },
    async listUsers(query) {
      const { items, nextCursor } = await listUsers(ctx, query)
      return { items: items.map(bodyOf), next_cursor: nextCursor }
    },
    async createUser(input) {
      const { user, link } = await createUser(ctx, input)
      return { user: bodyOf(user), set_password_url: link?.url ?? null, is_mailed: link !== null && ctx.postman !== null }
    },
    importUsers: (options) => importUsers(ctx, hostStore, options),
    exportUsers: (options) => exportUsers(ctx, options),
  }
}
