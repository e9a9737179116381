import type { AuthContext } from '../../context'
import { hasPassword } from '../../passwords/unusable-password'
import type { UserRecord } from '../../store/auth-store'
import { parseFilters } from '../filters'

export interface ExportOptions {
  /** The filters, as in `UserListQuery`. */
  readonly filters: Readonly<Record<string, string>>
  /** Whether the export contains password hashes and the host's private fields. */
  readonly withHashes: boolean
}

/** All accounts, the oldest first, in the form that the import reads. */
export interface UserExport {
  /** The names of the columns, in their order. */
  readonly fields: readonly string[]
  rows(): AsyncIterable<readonly Readonly<Record<string, unknown>>[]>
}

const pageSize = 500

/**
 * Returns the export of all accounts that match the filters.
 * @throws UnknownFilterKeyError, InvalidFilterValueError
 */
export function exportUsers({ store: { users } }: AuthContext, { filters, withHashes }: ExportOptions): UserExport {
  const parsed = parseFilters(Object.entries(filters), users.fields)
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
