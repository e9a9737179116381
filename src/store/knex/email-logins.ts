import type { Knex } from 'knex'
import type { EmailLoginRecord, EmailLoginStore } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { deleteExpired } from './delete-expired'
import type { Queryable, Row } from './queryable'

export function emailLoginsStore(connection: Connection, { emailLogins }: Tables): EmailLoginStore {
  const { dialect } = connection
  const unexpired = (query: Knex.QueryBuilder, at: Date) =>
    query.where(emailLogins.column('expiresAt'), '>', emailLogins.value('expiresAt', at))

  return {
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
