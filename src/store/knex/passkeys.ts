import type { Knex } from 'knex'
import type { PasskeyStore, PasskeyUse, PasskeyWithUser, UserRecord } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { holdUser, updateFound } from './hold-user'
import { insertRecord } from './insert-record'
import { databaseName, type Queryable, type Row, type Statement } from './queryable'
import { compiledSelect, updateReturning } from './statements'
import type { Values } from './table'

export function passkeysStore(connection: Connection, tables: Tables): PasskeyStore {
  const { users, passkeys, userTokens } = tables
  const { dialect } = connection
  return {
    async findWithUser(credentialId) {
      if (!passkeys.match({ credentialId })) return null
      const rows = await connection.statement('passkeys.findWithUser', (db) => passkeyWithUser(db, dialect, tables, { credentialId }))
      // base64url distinguishes upper and lower case, but a host's collation may treat two ids as equal.
      const found = rows.map((row) => ({ passkey: passkeys.toRecord(row), user: joinedUser(row) }))
      const isAsked = ({ passkey, user }: PasskeyWithUser) =>
        passkey.credentialId === credentialId && (user === null || passkey.userId === user.id)
      return found.find(isAsked) ?? null
    },

    async listForUser(userId) {
      const where = passkeys.match({ userId })
      if (!where) return []
      const rows = await connection.statement<Row[]>('passkeys.listForUser', (db) =>
        db(passkeys.name)
          .where(where)
          .select([...passkeys.selection])
          .orderBy([passkeys.column('createdAt'), passkeys.column('id')]),
      )
      return rows.map(passkeys.toRecord).filter((passkey) => passkey.userId === userId)
    },

    insert: (newPasskey) => insertRecord(connection, 'passkeys.insert', passkeys, newPasskey),

    async recordUse(use) {
      const seen = passkeys.match(asSeen(use))
      return seen !== null && updateFound(connection, 'passkeys.recordUse', passkeys, seen, passkeys.toRow(changesBy(use)))
    },

    async recordLogin(use, spent) {
      if (!passkeys.match(asSeen(use))) return null
      const row = userTokens.newRow(spent)
      const rows = dialect.writesInWith
        ? await connection.statement('passkeys.recordLogin', (db) => dialect.run(db, asOneStatement(db, tables, use, row)))
        : await connection.together('passkeys.recordLogin', (db) => inTurn(db, use, row))
      return rows.map(users.toRecord).find((user) => user.id === use.userId) ?? null
    },

    async rename(id, userId, name) {
      const where = passkeys.match({ id, userId })
      return where !== null && updateFound(connection, 'passkeys.rename', passkeys, where, passkeys.toRow({ name }))
    },

    async deleteForUser(userId, id) {
      const where = passkeys.match(id === undefined ? { userId } : { userId, id })
      if (!where) return 0
      return connection.statement<number>('passkeys.deleteForUser', (db) => db(passkeys.name).where(where).delete())
    },

    isPresent: () => connection.statement('passkeys.isPresent', (db) => dialect.mayUse(db, databaseName(db, passkeys.name))),
  }

  function joinedUser(row: Row): UserRecord | null {
    const isGone = (row[users.alias('id')] ?? null) === null
    return isGone ? null : users.toRecord(row)
  }

  /** Locks the user first, as every method of the store does. User and passkey then stay unchanged until the transaction ends. */
  async function inTurn(db: Queryable, use: PasskeyUse, spent: Values): Promise<Row[]> {
    const held = await holdUser(db, dialect, users, { id: use.userId, isActive: true })
    if (held.length === 0) return []
    const used = await updateReturning(db, dialect, passkeys, (query) => query.where(passkeys.where(asSeen(use))), changesBy(use))
    if (used.length === 0) return []
    await db(userTokens.name).insert(spent)
    const stamp = users.toRow({ lastLoginAt: use.at })
    if (Object.keys(stamp).length > 0)
      await db(users.name)
        .where(users.where({ id: use.userId }))
        .update(stamp)
    return held.map((row) => ({ ...row, ...users.asRow({ lastLoginAt: use.at }) }))
  }
}

function asSeen({ id, userId, seenCount }: PasskeyUse) {
  return { id, userId, signCount: seenCount }
}

function changesBy({ signCount, isBackedUp, at }: PasskeyUse) {
  return { signCount, isBackedUp, lastUsedAt: at }
}

const passkeyWithUser = compiledSelect<{ credentialId: string }>(['credentialId'], (db, { passkeys, users }, wanted) =>
  db(passkeys.name)
    .leftJoin(users.name, users.column('id'), passkeys.column('userId'))
    .where(passkeys.where(wanted))
    .select([...passkeys.selection, ...users.selection]),
)

/**
 * Locks the user, writes the counter, inserts the token `spent`, updates the user: each part uses the rows of the previous part. After a
 * wait for a lock, PostgreSQL checks the row again (EvalPlanQual, manual 13.2.1). A deactivated user, or a removed or used passkey, then
 * stops the later parts.
 */
function asOneStatement(db: Queryable, { users, passkeys, userTokens }: Tables, use: PasskeyUse, spent: Values): Statement {
  const held = db(users.name)
    .where(users.where({ id: use.userId, isActive: true }))
    .select({ helduser: users.column('id') })
    .forUpdate()
  const [changes, seen] = [Object.entries(passkeys.toRow(changesBy(use))), Object.entries(passkeys.where(asSeen(use)))]
  const used = db.raw(
    `update ?? set ${listed(changes, '?? = ?')} from held where ${listed(seen, '?? = ?', ' and ')} returning held.helduser`,
    [passkeys.name, ...changes.flat(), ...seen.flat()],
  )
  const token = Object.entries(spent)
  const inserted = db.raw(`insert into ?? (${listed(token, '??')}) select ${listed(token, '?')} from used returning 1 as spent`, [
    userTokens.name,
    ...token.map(([column]) => column),
    ...token.map(([, value]) => value),
  ])
  // Writes the row even if the table has no `lastLoginAt`, because the UPDATE locks the row.
  const [column, value] = users.fields.has('lastLoginAt')
    ? [users.bareColumn('lastLoginAt'), users.value('lastLoginAt', use.at)]
    : [users.bareColumn('isActive'), db.ref(users.column('isActive'))]
  const owner = db.raw(`update ?? set ?? = ? from used where ?? = used.helduser returning ${listed(users.selection, '??')}`, [
    users.name,
    column,
    value,
    users.column('id'),
    ...users.selection,
  ])
  const query = db.queryBuilder().with('held', held).with('used', used).with('spent', inserted).with('owner', owner)
  const { sql, bindings } = query.select('*').from('owner').toSQL()
  return { sql, bindings: bindings as readonly Knex.Value[] } // all bindings are values
}

function listed(items: readonly unknown[], place: string, between = ', '): string {
  return items.map(() => place).join(between)
}
