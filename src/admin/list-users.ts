import type { AuthContext } from '../context'
import { ValidationError } from '../core/errors'
import type { HostTypes, WithFields } from '../store/host-types'
import { type AdminUser, toAdminUser } from './admin-user'
import { parseFilters } from './filters'
import { openCursor, sealCursor } from './page-cursor'

export interface UserListQuery {
  /**
   * `field__op` -> value, as in a query string: `{ email__icontains: 'example', is_active: 'true' }`. An account must match all filters.
   */
  filters?: Readonly<Record<string, string>> | undefined
  /** The `nextCursor` of the previous page. The filters must be the filters of that page. */
  cursor?: string | undefined
  /** The size of a page, 1 to 100. Default 50. */
  limit?: number | undefined
}

export interface UserList<Host extends HostTypes = HostTypes> {
  items: WithFields<AdminUser, Host>[]
  /** Null on the last page. */
  nextCursor: string | null
}

/**
 * Returns accounts page by page, oldest first.
 * @throws UnknownFilterKeyError, InvalidFilterValueError, ValidationError (cursor, limit); the function throws all of them before it
 *   queries the database
 */
export async function listUsers(ctx: AuthContext, { filters = {}, cursor, limit = 50 }: UserListQuery = {}): Promise<UserList> {
  return listByEntries(ctx, { entries: Object.entries(filters), cursor, limit })
}

export interface UserListEntries extends Pick<UserListQuery, 'cursor'> {
  /** The pairs of the query string. A repeated key is rejected. */
  entries: readonly (readonly [string, unknown])[]
  limit: number
}

export async function listByEntries(ctx: AuthContext, { entries, cursor, limit }: UserListEntries): Promise<UserList> {
  const { users } = ctx.store
  const filters = parseFilters(entries, users.fields)
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw new ValidationError({ details: { errors: [{ path: 'limit', rule: 'number.between' }] } })
  const after = cursor === undefined ? null : openCursor(ctx.keys.cursor, filters, cursor)
  const page = await users.list({ filters, after, limit })
  return { items: page.users.map(toAdminUser), nextCursor: page.next === null ? null : sealCursor(ctx.keys.cursor[0], filters, page.next) }
}
