import type { Knex } from 'knex'
import type { IdentityStore, IdentityWithUser, UserRecord } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import { touchedColumn } from './hold-user'
import { insertRecord } from './insert-record'
import type { Queryable, Row } from './queryable'
import { compiledFor, compiledSelect, slotsOf } from './statements'

export function identitiesStore(connection: Connection, tables: Tables): IdentityStore {
  const { users, identities } = tables
  const { dialect } = connection
  return {
    async findWithUser(provider, subject) {
      if (!identities.match({ provider, subject })) return null
      const link = { provider, subject }
      const rows = await connection.statement('identities.findWithUser', (db) => linkWithUser(db, dialect, tables, link))
      // 'AbC', 'abc' and 'AbC ' are three subjects, but a host's collation may treat these texts as equal.
      const found = rows.map((row) => ({ identity: identities.toRecord(row), user: joinedUser(row) }))
      const isAsked = ({ identity, user }: IdentityWithUser) =>
        identity.provider === provider && identity.subject === subject && (user === null || identity.userId === user.id)
      return found.find(isAsked) ?? null
    },

    async listForUser(userId) {
      const where = identities.match({ userId })
      if (!where) return []
      const order = [identities.column('createdAt'), identities.column('id')]
      const rows = await connection.statement<Row[]>('identities.listForUser', (db) =>
        db(identities.name)
          .where(where)
          .select([...identities.selection])
          .orderBy(order),
      )
      return rows.map(identities.toRecord).filter((identity) => identity.userId === userId)
    },

    insert: (newIdentity) => insertRecord(connection, 'identities.insert', identities, newIdentity),

    async recordLogin({ userId, provider, subject }, at) {
      const login = { userId, provider, subject, at }
      const link = identities.match({ userId, provider, subject })
      if (!link) return null
      const verb = 'identities.recordLogin'
      const rows = dialect.writesInWith
        ? await connection.statement(verb, (db) => dialect.run(db, stampBoth(db, tables, login)))
        : dialect.rowLocks
          ? await connection.together(verb, (db) => holdThenStamp(db, userId, link, at))
          : await connection.unit((inside) => stampUserThenIdentity(inside, verb, login))
      return rows.map(users.toRecord).find((user) => user.id === userId) ?? null
    },

    async deleteForUser(userId, provider) {
      const where = identities.match(provider === undefined ? { userId } : { userId, provider })
      if (!where) return 0
      return connection.statement<number>('identities.deleteForUser', (db) => db(identities.name).where(where).delete())
    },
  }

  function joinedUser(row: Row): UserRecord | null {
    const isGone = (row[users.alias('id')] ?? null) === null
    return isGone ? null : users.toRecord(row)
  }

  /** The first write locks the file, so it writes the user's row even if the table has no column for the login time. */
  async function stampUserThenIdentity({ guarded }: Connection, verb: string, login: Login): Promise<Row[]> {
    const rows = await guarded(verb, (db) => dialect.run(db, stampUser(db, tables, login)))
    if (rows.length > 0) await guarded(verb, (db) => dialect.run(db, stampIdentity(db, tables, login)))
    return rows
  }

  /** Locks the user first, as every method does: STRAIGHT_JOIN locks in the written order. Both rows then stay unchanged. */
  async function holdThenStamp(db: Queryable, userId: string, link: object, at: Date): Promise<Row[]> {
    const both = () =>
      db(users.name)
        .joinRaw('straight_join ??', [identities.name])
        .where(users.where({ id: userId, isActive: true }))
        .where(link)
    const rows: Row[] = await both()
      .select([...users.selection])
      .forUpdate()
    if (rows.length === 0) return []
    await both().update({
      [identities.column('lastLoginAt')]: identities.value('lastLoginAt', at),
      ...(users.fields.has('lastLoginAt') && { [users.column('lastLoginAt')]: users.value('lastLoginAt', at) }),
    })
    return rows.map((row) => ({ ...row, ...users.asRow({ lastLoginAt: at }) }))
  }
}

interface Login {
  userId: string
  provider: string
  subject: string
  at: Date
}

type Link = Pick<Login, 'provider' | 'subject'>

const linkWithUser = compiledSelect<Link>(['provider', 'subject'], (db, { identities, users }, link) =>
  db(identities.name)
    .leftJoin(users.name, users.column('id'), identities.column('userId'))
    .where(identities.where(link))
    .select([...identities.selection, ...users.selection]),
)

const slotsOfLogin = () => slotsOf<Login>(['userId', 'provider', 'subject', 'at'])

function linked(db: Queryable, { identities }: Tables, { userId, provider, subject }: Login): Knex.QueryBuilder {
  return db(identities.name).where(identities.where({ userId, provider, subject }))
}

const stampUser = compiledFor<Login>((db, tables) => {
  const { users } = tables
  const login = slotsOfLogin()
  const touched = touchedColumn(users)
  return db(users.name)
    .where(users.where({ id: login.userId, isActive: true }))
    .whereExists(linked(db, tables, login).select(db.raw('1')))
    .update({ [touched]: db.ref(touched), ...users.toRow({ lastLoginAt: login.at }) })
    .returning([...users.selection])
})

const stampIdentity = compiledFor<Login>((db, tables) => {
  const login = slotsOfLogin()
  return linked(db, tables, login).update(tables.identities.toRow({ lastLoginAt: login.at }))
})

/**
 * Locks the user, updates the identity, updates the user: each part uses the rows of the previous part. After a wait for a lock, PostgreSQL
 * checks the row again (EvalPlanQual, manual 13.2.1). A deactivated user or a deleted link then stops the later parts. The conditions use
 * only rows of joined tables, because a sub-select would still see the old rows.
 */
const stampBoth = compiledFor<Login>((db, tables) => {
  const { users, identities } = tables
  const login = slotsOfLogin()
  const held = linked(db, tables, login)
    .join(users.name, users.column('id'), identities.column('userId'))
    .where(users.where({ isActive: true }))
    .select({ heldidentity: identities.column('id'), helduser: users.column('id') })
    .forUpdate(users.name)
  const stamped = db.raw('update ?? set ?? = ? from held where ?? = held.heldidentity returning held.helduser', [
    identities.name,
    identities.bareColumn('lastLoginAt'),
    identities.value('lastLoginAt', login.at),
    identities.column('id'),
  ])
  // Writes the row even if the table has no `lastLoginAt`, because the UPDATE locks the row.
  const stamp = users.fields.has('lastLoginAt')
    ? db.raw('?? = ?', [users.bareColumn('lastLoginAt'), users.value('lastLoginAt', login.at)])
    : db.raw('?? = ??', [users.bareColumn('isActive'), users.column('isActive')])
  const owner = db.raw(`update ?? set ? from stamped where ?? = stamped.helduser returning ${users.selection.map(() => '??').join(', ')}`, [
    users.name,
    stamp,
    users.column('id'),
    ...users.selection,
  ])
  return db.queryBuilder().with('held', held).with('stamped', stamped).with('owner', owner).select('*').from('owner')
})
