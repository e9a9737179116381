import type { Knex } from 'knex'
import type { EmailLoginRecord, EmailLoginStore, RecoveryCodeStore, UserTokenPurpose, UserTokenStore } from '../auth-store'
import { neverEnds } from '../user-records'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import { insertRecord } from './insert-record'
import type { Queryable, Row } from './queryable'
import { updateReturning } from './statements'

const abandonedAfterMs = 7 * 86_400_000

export function userTokensStore(connection: Connection, { users, userTokens }: Tables): UserTokenStore {
  /** Without `activatedAt`, only a used activation token shows that an account was activated. So `deleteExpired` must never delete it. */
  const kept = (purpose: UserTokenPurpose, at: Date) =>
    purpose === 'ACTIVATION' && !users.fields.has('activatedAt') ? { expiresAt: neverEnds(at) } : {}

  return {
    insert: (newToken) => insertRecord(connection, 'userTokens.insert', userTokens, newToken),

    async find(tokenHash) {
      const where = userTokens.match({ tokenHash })
      if (!where) return null
      const rows = await connection.statement<Row[]>('userTokens.find', (db) =>
        db(userTokens.name)
          .where(where)
          .select([...userTokens.selection]),
      )
      return rows.map(userTokens.toRecord).find((token) => token.tokenHash === tokenHash) ?? null
    },

    async consume(tokenHash, purpose, at) {
      const open = userTokens.match({ tokenHash, purpose, usedAt: null })
      if (!open) return null
      const unexpired = [userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', at)] as const
      const [row] = await connection.guarded('userTokens.consume', (db) =>
        updateReturning(db, connection.dialect, userTokens, (query) => query.where(open).where(...unexpired), {
          usedAt: at,
          ...kept(purpose, at),
        }),
      )
      const token = row ? userTokens.toRecord(row) : null
      return token?.tokenHash === tokenHash && token.purpose === purpose ? token : null
    },

    // Also invalidates expired tokens, because a process whose clock is slow still accepts them.
    async consumeAllForUser(userId, at, purpose) {
      const open = userTokens.match({ userId, usedAt: null })
      if (!open) return 0
      const column = userTokens.column('purpose')
      const changes = userTokens.toRow({ usedAt: at })
      const [expiresAt, end] = [userTokens.column('expiresAt'), userTokens.value('expiresAt', at)]
      return connection.statement<number>('userTokens.consumeAllForUser', (db) => {
        const earlier = db.raw('case when ?? > ? then ? else ?? end', [expiresAt, end, end, expiresAt])
        const query = db(userTokens.name).where(open)
        const meant = purpose === undefined ? query.whereNot(column, 'UNDO') : query.whereIn(column, [purpose].flat())
        return meant.update({ ...changes, [userTokens.bareColumn('expiresAt')]: earlier })
      })
    },

    async listOpen(userId, purpose, at) {
      const open = userTokens.match({ userId, purpose, usedAt: null })
      if (!open) return []
      const rows = await connection.statement<Row[]>('userTokens.listOpen', (db) =>
        db(userTokens.name)
          .where(open)
          .where(userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', at))
          .orderBy([userTokens.column('createdAt'), userTokens.column('id')])
          .select([...userTokens.selection]),
      )
      // A host's collation may treat two keys as equal.
      return rows.map(userTokens.toRecord).filter((token) => token.userId === userId && token.purpose === purpose)
    },

    async wasConsumed(userId, purpose) {
      const where = userTokens.match({ userId, purpose })
      if (!where) return false
      const [usedAt, expiresAt] = [userTokens.column('usedAt'), userTokens.column('expiresAt')]
      const rows = await connection.statement<Row[]>('userTokens.wasConsumed', (db) =>
        db(userTokens.name)
          .where(where)
          .where(usedAt, '<', db.ref(expiresAt))
          .select([...userTokens.select(['userId', 'purpose'])]),
      )
      // A host's collation may treat two keys as equal.
      return rows.some((row) => userTokens.read(row, 'userId') === userId && userTokens.read(row, 'purpose') === purpose)
    },

    deleteExpired: (expired) =>
      deleteExpired(connection, 'userTokens.deleteExpired', userTokens, 'expiresAt', expired, {
        narrow: (query) =>
          query
            .whereNot(users.fields.has('activatedAt') ? recentActivation(expired.before) : redeemedActivation)
            .whereNot(pendingInvitation(userTokens)),
      }),
  }

  /** `users.deleteAbandoned` still needs these: their expiry shows when a pending account was abandoned. */
  function recentActivation(before: Date): (query: Knex.QueryBuilder) => void {
    const since = new Date(before.getTime() - abandonedAfterMs)
    return (query) =>
      query
        .where(userTokens.where({ purpose: 'ACTIVATION' }))
        .whereNull(userTokens.column('usedAt'))
        .where(userTokens.column('expiresAt'), '>', userTokens.value('expiresAt', since))
  }

  /** Without the column `activatedAt`, only used tokens show that an account was activated. */
  function redeemedActivation(query: Knex.QueryBuilder): void {
    query
      .where(userTokens.where({ purpose: 'ACTIVATION' }))
      .whereNotNull(userTokens.column('usedAt'))
      .whereRaw('?? < ??', [userTokens.column('usedAt'), userTokens.column('expiresAt')])
  }
}

/** A pending account that stays still needs the invitation of its sign-up. The account's activation and its deletion end the row. */
export function pendingInvitation(userTokens: Tables['userTokens']): (query: Knex.QueryBuilder) => void {
  return (query) =>
    query
      .where(userTokens.where({ purpose: 'ACTIVATION' }))
      .whereNull(userTokens.column('usedAt'))
      .whereNotNull(userTokens.column('payload')) // NOT of an unknown condition would keep the row
      .where(userTokens.column('payload'), 'like', '%"invitation":"%')
}

export function emailLoginsStore(connection: Connection, { emailLogins }: Tables): EmailLoginStore {
  const { dialect } = connection
  const unexpired = (query: Knex.QueryBuilder, at: Date) =>
    query.where(emailLogins.column('expiresAt'), '>', emailLogins.value('expiresAt', at))

  return {
    fields: emailLogins.fields,

    async insert(login) {
      const row = emailLogins.newRow(login)
      await connection.statement('emailLogins.insert', (db) => db(emailLogins.name).insert(row))
    },

    async find(wanted) {
      const where = emailLogins.match(wanted)
      if (!where) return null
      const rows = await connection.statement<Row[]>('emailLogins.find', (db) =>
        db(emailLogins.name)
          .where(where)
          .select([...emailLogins.selection]),
      )
      // A host's collation may treat two hashes as equal.
      return rows.map(emailLogins.toRecord).find((login) => meets(login, wanted)) ?? null
    },

    async countTry(id, most, at) {
      const open = emailLogins.match({ id, usedAt: null })
      if (!open) return null
      const tryable = (db: Queryable) =>
        unexpired(db(emailLogins.name).where(open), at).where(emailLogins.column('tries'), '<', emailLogins.value('tries', most))
      const [row] = await connection.guarded<Row[]>('emailLogins.countTry', async (db) => {
        const oneMore = { [emailLogins.bareColumn('tries')]: db.raw('?? + 1', [emailLogins.bareColumn('tries')]) }
        if (dialect.returning)
          return tryable(db)
            .update(oneMore)
            .returning([...emailLogins.selection])
        // A locking read waits for the row's lock, and then sees the row's new values.
        const rows: Row[] = await tryable(db)
          .select([...emailLogins.selection])
          .forUpdate()
        if (rows.length > 0) await db(emailLogins.name).where(open).update(oneMore)
        return rows.map((row) => ({ ...row, [emailLogins.alias('tries')]: emailLogins.read(row, 'tries') + 1 }))
      })
      const login = row ? emailLogins.toRecord(row) : null
      return login?.id === id ? login : null
    },

    async uncountTry(id) {
      const open = emailLogins.match({ id, usedAt: null })
      if (!open) return
      await connection.statement('emailLogins.uncountTry', (db) =>
        db(emailLogins.name)
          .where(open)
          .where(emailLogins.column('tries'), '>', emailLogins.value('tries', 0))
          .update({ [emailLogins.bareColumn('tries')]: db.raw('?? - 1', [emailLogins.bareColumn('tries')]) }),
      )
    },

    async consume(id, at) {
      const open = emailLogins.match({ id, usedAt: null })
      if (!open) return false
      const changes = emailLogins.toRow({ usedAt: at })
      const changed = await connection.statement<number>('emailLogins.consume', (db) =>
        unexpired(db(emailLogins.name).where(open), at).update(changes),
      )
      return changed === 1
    },

    async listOpen(email, at) {
      const open = emailLogins.match({ email, usedAt: null })
      if (!open) return []
      const rows = await connection.statement<Row[]>('emailLogins.listOpen', (db) =>
        unexpired(db(emailLogins.name).where(open), at)
          .orderBy([emailLogins.column('createdAt'), emailLogins.column('id')])
          .select([...emailLogins.selection]),
      )
      // A host's collation may treat two addresses as equal.
      return rows.map(emailLogins.toRecord).filter((login) => login.email === email)
    },

    // Also expired rows, because a process whose clock is slow still accepts them.
    async consumeAllForEmail(email, at) {
      if (!emailLogins.match({ email })) return 0
      const changes = emailLogins.toRow({ usedAt: at })
      return connection.statement<number>('emailLogins.consumeAllForEmail', (db) =>
        emailLogins.whereExactly(db(emailLogins.name), { email, usedAt: null }).update(changes),
      )
    },

    deleteExpired: (expired) => deleteExpired(connection, 'emailLogins.deleteExpired', emailLogins, 'expiresAt', expired),
  }
}

function meets(login: EmailLoginRecord, wanted: Partial<EmailLoginRecord>): boolean {
  return Object.entries(wanted).every(([field, value]) => login[field as keyof EmailLoginRecord] === value) // `field` is a login's field
}

export function recoveryCodesStore(connection: Connection, { users, recoveryCodes }: Tables): RecoveryCodeStore {
  return {
    async replaceForUser(userId, codeHashes) {
      const rows = codeHashes.map((codeHash) => recoveryCodes.newRow({ userId, codeHash, usedAt: null }))
      const old = recoveryCodes.match({ userId })
      const owner = users.match({ id: userId })
      if (!old || !owner) return
      await connection.together('recoveryCodes.replaceForUser', async (db) => {
        // Without this lock, two calls at once would each delete the old set, and both new sets would stay.
        if (connection.dialect.rowLocks) await db(users.name).where(owner).select(users.column('id')).forUpdate()
        await db(recoveryCodes.name).where(old).delete()
        if (rows.length > 0) await db(recoveryCodes.name).insert(rows)
      })
    },

    async consume(userId, codeHash, at) {
      const open = recoveryCodes.match({ userId, codeHash, usedAt: null })
      if (!open) return false
      const changes = recoveryCodes.toRow({ usedAt: at })
      const changed = await connection.statement<number>('recoveryCodes.consume', (db) =>
        db(recoveryCodes.name).where(open).update(changes),
      )
      return changed === 1
    },

    async deleteForUser(userId) {
      const where = recoveryCodes.match({ userId })
      if (!where) return 0
      return connection.statement<number>('recoveryCodes.deleteForUser', (db) => db(recoveryCodes.name).where(where).delete())
    },
  }
}
