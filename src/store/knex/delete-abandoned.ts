import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { AbandonedAccounts, Expired } from '../auth-store'
import type { Connection } from './connection'
import type { HostTables, Tables } from './default-tables'
import { nextEnded } from './delete-expired'
import { heldByForeignKey } from './driver-errors'
import { holdUsers } from './hold-user'
import type { Queryable } from './queryable'
import { pendingInvitation } from './user-tokens'

const verb = 'users.deleteAbandoned'

/** An account is abandoned if its newest activation link expired by `before`. */
interface Search {
  readonly tables: Tables
  readonly hostTables: HostTables
  readonly before: Date
}

/** Walks along the expired activation links: a search of all pending accounts is slow. With `run`, reads one batch of links. */
export async function deleteAbandoned(
  connection: Connection,
  tables: Tables,
  hostTables: HostTables,
  { before, most, run }: Expired,
): Promise<AbandonedAccounts> {
  const { users, userTokens } = tables
  const state = run ?? {}
  const result = { deleted: 0, held: 0 }
  if (!users.fields.has('activatedAt')) return result
  const end = userTokens.value('expiresAt', before)
  const where = (query: Knex.QueryBuilder) =>
    query.where(userTokens.where({ purpose: 'ACTIVATION' })).where(userTokens.column('expiresAt'), '<=', end)
  do {
    const batch = { most: most - result.deleted - result.held, run: state }
    const links = await nextEnded(connection, verb, userTokens, 'expiresAt', batch, { where, fields: ['id', 'userId'] })
    const owners = [...new Set(links.map((link) => userTokens.read(link, 'userId')))]
    const search = { tables, hostTables, before }
    const { deleted, held } = await removeOrLeave(connection, search, await abandonedAmong(connection, search, owners))
    result.deleted += deleted
    result.held += held
  } while (!run && !state.isOver && result.deleted + result.held < most)
  return result
}

async function abandonedAmong(connection: Connection, { tables, before }: Search, ids: readonly string[]) {
  const { users, userTokens } = tables
  if (ids.length === 0) return []
  const later = (db: Queryable) =>
    ofUsers(db(userTokens.name), tables, userTokens.column('userId'), ids)
      .where(userTokens.where({ purpose: 'ACTIVATION' }))
      .where(userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', before))
      .select(userTokens.column('userId'))
  const rows = await connection.statement(verb, (db) => {
    const query = ofUsers(db(users.name), tables, users.column('id'), ids)
      .where(users.where({ isActive: false, activatedAt: null }))
      .whereNotIn(users.column('id'), later(db))
      .select([...users.select(['id'])])
    return users.fields.has('lastLoginAt') ? query.whereNull(users.column('lastLoginAt')) : query
  })
  return rows.map((row: Record<string, unknown>) => users.read(row, 'id'))
}

/** If a row of another table refers to an account, searches that account by halves and leaves it. */
async function removeOrLeave(connection: Connection, search: Search, ids: readonly string[]): Promise<AbandonedAccounts> {
  if (ids.length === 0) return { deleted: 0, held: 0 }
  try {
    return { deleted: await connection.unit((inside) => remove(inside, search, ids)), held: 0 }
  } catch (error) {
    const code: unknown = error instanceof Error && 'code' in error ? error.code : null
    if (typeof code !== 'string' || !heldByForeignKey.test(code)) throw error
    const middle = Math.ceil(ids.length / 2)
    if (middle === ids.length) return leave(connection, search, ids)
    const one = await removeOrLeave(connection, search, ids.slice(0, middle))
    const other = await removeOrLeave(connection, search, ids.slice(middle))
    return { deleted: one.deleted + other.deleted, held: one.held + other.held }
  }
}

/**
 * Deletes the expired activation links, so that a later call does not find the accounts again. One that names an invitation stays: without
 * it, a later link would need none.
 */
async function leave(connection: Connection, { tables, before }: Search, ids: readonly string[]) {
  const { userTokens } = tables
  await connection.statement(verb, (db) =>
    ofUsers(db(userTokens.name), tables, userTokens.column('userId'), ids)
      .where(userTokens.where({ purpose: 'ACTIVATION' }))
      .where(userTokens.column('expiresAt'), '<=', userTokens.value('expiresAt', before))
      .whereNot(pendingInvitation(userTokens))
      .delete(),
  )
  return { deleted: 0, held: ids.length }
}

/** Locks and checks the accounts again: an owner may have activated the account or signed up again meanwhile. */
async function remove(connection: Connection, search: Search, ids: readonly string[]): Promise<number> {
  const { tables, hostTables } = search
  const { users, userTokens } = tables
  await connection.statement(verb, (db) =>
    holdUsers(db, connection.dialect, users, (query) => ofUsers(query, tables, users.column('id'), ids)),
  )
  const still = await abandonedAmong(connection, search, ids)
  if (still.length === 0) return 0
  const optional = (['identities', 'recoveryCodes', 'sessions'] as const).filter((name) => hostTables[name] !== false)
  for (const table of [userTokens, ...optional.map((name) => tables[name])]) {
    await nextTurn()
    await connection.statement(verb, (db) => ofUsers(db(table.name), tables, table.column('userId'), still).delete())
  }
  await nextTurn()
  return connection.statement<number>(verb, (db) => ofUsers(db(users.name), tables, users.column('id'), still).delete())
}

function ofUsers(query: Knex.QueryBuilder, { users }: Tables, column: string, ids: readonly string[]): Knex.QueryBuilder {
  return query.whereIn(column, ids.map((id) => users.value('id', id)) as string[]) // the keys may have any type that knex can bind
}
