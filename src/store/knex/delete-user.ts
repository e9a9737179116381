import type { Knex } from 'knex'
import type { DueDeletions, UserDeletion, UserRecord } from '../auth-store'
import type { Connection } from './connection'
import type { HostTables, Tables } from './default-tables'
import { whereLater } from './delete-expired'
import { deletionVerb, heldByForeignKey } from './driver-errors'
import { holdUsers } from './hold-user'
import { databaseName, type Queryable } from './queryable'

/** Locks the account first, and checks it again: it may have come back meanwhile. */
export async function deleteUser(connection: Connection, tables: Tables, hostTables: HostTables, deletion: UserDeletion): Promise<boolean> {
  if (!tables.users.match({ id: deletion.id })) return false
  return connection.together(deletionVerb, async (db) => {
    const { users } = tables
    const meant = (query: Knex.QueryBuilder) => whereMeant(query, tables, deletion)
    const [held] = await holdUsers(db, connection.dialect, users, meant)
    if (!held || users.read(held, 'id') !== deletion.id) return false // a host's collation may treat two keys as equal
    await deleteRows(db, connection, tables, hostTables, deletion)
    try {
      return (await meant(db(users.name)).delete()) === 1
    } catch (error) {
      throw await namingTable(error, () => findReferring(db, tables, deletion.id))
    }
  })
}

function whereMeant(query: Knex.QueryBuilder, { users }: Tables, { id, requestedBy }: UserDeletion): Knex.QueryBuilder {
  const one = query.where(users.where({ id }))
  if (requestedBy === undefined) return one
  const requestedAt = users.column('deletionRequestedAt')
  return one.where(users.where({ isActive: false })).where(requestedAt, '<=', users.value('deletionRequestedAt', requestedBy))
}

async function deleteRows(
  db: Queryable,
  { dialect }: Connection,
  tables: Tables,
  hostTables: HostTables,
  { id, addresses, invited, at }: UserDeletion,
): Promise<void> {
  const { users, userTokens, emailLogins, invitations } = tables
  const isThere = async (name: 'passkeys' | 'trustedDevices' | 'invitations' | 'invitationUses' | 'emailLogins') =>
    hostTables[name] !== false && (await dialect.mayUse(db, databaseName(db, tables[name].name)))
  if (await isThere('emailLogins')) {
    // A code beside a link has the hash of the link, and can go to another address.
    const tokens = await db(userTokens.name)
      .where(userTokens.where({ userId: id }))
      .select([...userTokens.select(['tokenHash'])])
    const hashes = tokens.map((row: Record<string, unknown>) => userTokens.read(row, 'tokenHash'))
    if (hashes.length > 0) await db(emailLogins.name).whereIn(emailLogins.column('tokenHash'), hashes).delete()
    for (const email of addresses) await emailLogins.whereExactly(db(emailLogins.name), { email }).delete()
  }
  if (await isThere('invitations')) {
    for (const email of invited) {
      const made = () => invitations.whereExactly(db(invitations.name), { email })
      await made()
        .whereNull(invitations.column('revokedAt'))
        .update(invitations.toRow({ revokedAt: at }))
      await made().update(invitations.toRow({ email: null }))
    }
    if (invitations.fields.has('createdBy'))
      await db(invitations.name)
        .where(invitations.where({ createdBy: id }))
        .update(invitations.toRow({ createdBy: null }))
  }
  const optional = [
    ...(['identities', 'recoveryCodes', 'sessions'] as const).filter((name) => hostTables[name] !== false),
    ...((await isThere('passkeys')) ? (['passkeys'] as const) : []),
    ...((await isThere('trustedDevices')) ? (['trustedDevices'] as const) : []),
    ...((await isThere('invitationUses')) ? (['invitationUses'] as const) : []),
  ]
  const key = users.value('id', id) as Knex.Value // `match` found that a key can hold it
  for (const table of [userTokens, ...optional.map((name) => tables[name])])
    await db(table.name).where(table.column('userId'), key).delete()
}

export async function listDeletions(connection: Connection, { users }: Tables, { by, after, most }: DueDeletions): Promise<UserRecord[]> {
  if (!users.fields.has('deletionRequestedAt')) return []
  const [requestedAt, id] = [users.column('deletionRequestedAt'), users.column('id')]
  const rows = await connection.statement('users.listDeletions', (db) => {
    const query = db(users.name)
      .where(users.where({ isActive: false }))
      .where(requestedAt, '<=', users.value('deletionRequestedAt', by))
    if (after?.deletionRequestedAt) {
      const at = users.value('deletionRequestedAt', after.deletionRequestedAt) as Knex.Value // an instant
      whereLater(query, connection.dialect, [requestedAt, at], [id, users.value('id', after.id) as Knex.Value]) // a key
    }
    return query
      .orderBy([requestedAt, id])
      .limit(most)
      .select([...users.selection])
  })
  return rows.map(users.toRecord)
}

/** SQLite does not name the table, so it is searched. The other drivers say it. */
async function namingTable(error: unknown, find: () => Promise<string | null>): Promise<unknown> {
  const isHeld = error instanceof Error && 'code' in error && heldByForeignKey.test(String(error.code))
  if (!isHeld || !String((error as { code?: unknown }).code).startsWith('SQLITE')) return error
  return Object.assign(error, { table: await find() })
}

async function findReferring(db: Queryable, { users }: Tables, id: string): Promise<string | null> {
  const own = databaseName(db, users.name).toLowerCase()
  const key = users.value('id', id) as Knex.Value // as above
  const names: { name: string }[] = await db.raw("select name from sqlite_master where type = 'table'")
  for (const { name } of names) {
    const columns: { column: string }[] = await db.raw(
      'select "from" as "column" from pragma_foreign_key_list(?) where lower("table") = ?',
      [name, own],
    )
    for (const { column } of columns) {
      const [referring] = await db.raw('select 1 from ?? where ?? = ? limit 1', [name, column, key])
      if (referring) return name
    }
  }
  return null
}
