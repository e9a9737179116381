import type { AuthContext } from '../context'
import { isTest } from '../core/config/environment'
import { ConfigurationError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'
import type { AuthRouterOptions } from '../options'
import { areOtherUsers, type UsersPlace, usersPlace } from '../store/knex/database-facts'

/** A router of this process. */
interface Running extends Pick<AuthContext, 'prefix'> {
  readonly keys: AuthContext['keys']['access']
  readonly isTest: boolean
  /** Null: the store is an adapter of the host, so that its accounts are unknown. */
  readonly users: UsersPlace | null
}

/** The routers of this process that are still in memory. */
const running = new Set<WeakRef<Running>>()
/** Keeps the entry of a router as long as the router's context. */
const entries = new WeakMap<AuthContext, Running>()

/**
 * Rejects a router that has the keys of another router of this process, but other accounts: a token of one account would be a token of
 * somebody else there. Tests open a new database for the same router, so two databases do not count in environment `test`. Two
 * databases count only for routers of different prefixes, because scripts and reloaded modules open a new one for the same router.
 * @throws ConfigurationError
 */
export function refuseSharedRealm(ctx: AuthContext, { store, environment }: AuthRouterOptions): void {
  const own = { keys: ctx.keys.access, prefix: ctx.prefix, users: usersPlace(store), isTest: isTest(environment) }
  const other = strangersOf(own).find((each) => each.users?.knex === own.users?.knex || !(own.isTest || each.isTest))
  if (other)
    throw new ConfigurationError(
      `Two routers of this process (${other.prefix} and ${own.prefix}) have the same jwtSecret (AUTH_JWT_SECRET) and realm (AUTH_REALM), but different users tables or databases. A token of one router would be a token of somebody else at the other. Give each router a realm of its own. ${seeTroubleshooting('shared-realm')}`,
    )
  entries.set(ctx, own)
  running.add(new WeakRef(own))
}

/** Returns true if another router of this process has a key of this router, but other accounts. */
export function sharesItsRealm(ctx: AuthContext): boolean {
  const own = entries.get(ctx)
  return own !== undefined && strangersOf(own).length > 0
}

function strangersOf(own: Running): Running[] {
  const found: Running[] = []
  for (const reference of running) {
    const other = reference.deref()
    if (!other) running.delete(reference)
    else if (other !== own && isStranger(own, other)) found.push(other)
  }
  return found
}

function isStranger({ users: own, keys, prefix }: Running, other: Running): boolean {
  if (!own || !other.users || !areOtherUsers(own, other.users)) return false
  if (own.knex !== other.users.knex && prefix === other.prefix) return false
  return other.keys.some((key) => keys.some((mine) => mine.equals(key)))
}
