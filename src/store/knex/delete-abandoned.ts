import type { Knex } from 'knex'
import type { AbandonedAccounts, Expired } from '../auth-store'
import type { Connection } from './connection'
import type { HostTables, Tables } from './default-tables'
import { holdUser } from './hold-user'
import type { Queryable } from './queryable'

/** The error codes of the three databases if another table refers to the row. */
const heldByForeignKey = /^(23503|ER_ROW_IS_REFERENCED(_2)?|SQLITE_CONSTRAINT_(FOREIGNKEY|TRIGGER))$/

/**
 * Deletes the abandoned accounts, each in its own transaction. So if a host's table refers to one account, the other accounts are still
 * deleted.
 */
export async function deleteAbandoned(
  connection: Connection,
  tables: Tables,
  hostTables: HostTables,
  expired: Expired,
): Promise<AbandonedAccounts> {
  const { users } = tables
  if (!users.fields.has('activatedAt')) return { deleted: 0, held: 0 }
  const rows = await connection.statement('users.deleteAbandoned', (db) => abandoned(db, tables, expired.before).limit(expired.most))
  const result = { deleted: 0, held: 0 }
  for (const row of rows) {
    const id = users.read(row, 'id')
    const outcome = await removeOrLeave(connection, tables, hostTables, id, expired.before)
    if (outcome !== 'gone on') result[outcome] += 1
  }
  return result
}

/** Selects pending accounts whose newest activation link expired by `before`. */
function abandoned(db: Queryable, { users, userTokens }: Tables, before: Date): Knex.QueryBuilder {
  const end = [userTokens.column('expiresAt'), userTokens.value('expiresAt', before)] as const
  const links = () => db(userTokens.name).where(userTokens.where({ purpose: 'ACTIVATION' }))
  const query = db(users.name)
    .where(users.where({ isActive: false, activatedAt: null }))
    .whereIn(users.column('id'), links().where(end[0], '<=', end[1]).select(userTokens.column('userId')))
    .whereNotIn(users.column('id'), links().where(end[0], '>', end[1]).select(userTokens.column('userId')))
    .select([...users.select(['id'])])
  return users.fields.has('lastLoginAt') ? query.whereNull(users.column('lastLoginAt')) : query
}

async function removeOrLeave(
  connection: Connection,
  tables: Tables,
  hostTables: HostTables,
  id: string,
  before: Date,
): Promise<'deleted' | 'held' | 'gone on'> {
  try {
    return (await connection.unit((inside) => remove(inside, tables, hostTables, id, before))) ? 'deleted' : 'gone on'
  } catch (error) {
    const code: unknown = error instanceof Error && 'code' in error ? error.code : null
    if (typeof code !== 'string' || !heldByForeignKey.test(code)) throw error
    // Deletes the account's expired activation links, so that a later call does not select the account again.
    const { userTokens } = tables
    await connection.statement('users.deleteAbandoned', (db) =>
      db(userTokens.name)
        .where(userTokens.where({ userId: id, purpose: 'ACTIVATION' }))
        .where(userTokens.column('expiresAt'), '<=', userTokens.value('expiresAt', before))
        .delete(),
    )
    return 'held'
  }
}

/**
 * Deletes one account. First locks the user's row and checks the account again, because the owner may have activated the account or signed
 * up again meanwhile.
 */
async function remove(connection: Connection, tables: Tables, hostTables: HostTables, id: string, before: Date): Promise<boolean> {
  const { users, identities, userTokens, recoveryCodes, sessions } = tables
  const verb = 'users.deleteAbandoned'
  await connection.statement(verb, (db) => holdUser(db, connection.dialect, users, { id }))
  const still = await connection.statement(verb, (db) => abandoned(db, tables, before).where(users.where({ id })))
  if (still.length === 0) return false
  const deletions: readonly ((db: Queryable) => PromiseLike<number>)[] = [
    (db) =>
      db(userTokens.name)
        .where(userTokens.where({ userId: id }))
        .delete(),
    ...(hostTables.identities === false
      ? []
      : [
          (db: Queryable) =>
            db(identities.name)
              .where(identities.where({ userId: id }))
              .delete(),
        ]),
    ...(hostTables.recoveryCodes === false
      ? []
      : [
          (db: Queryable) =>
            db(recoveryCodes.name)
              .where(recoveryCodes.where({ userId: id }))
              .delete(),
        ]),
    ...(hostTables.sessions === false
      ? []
      : [
          (db: Queryable) =>
            db(sessions.name)
              .where(sessions.where({ userId: id }))
              .delete(),
        ]),
    (db) => db(users.name).where(users.where({ id })).delete(),
  ]
  for (const deletion of deletions) await connection.statement(verb, deletion)
  return true
}
