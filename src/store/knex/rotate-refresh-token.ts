import type { Knex } from 'knex'
import type { RefreshTokenRecord, Rotation, UserRecord } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import type { Dialect } from './dialect'
import type { Row } from './table'

type Rotated = { token: RefreshTokenRecord; user: UserRecord }

export async function rotate(connection: Connection, tables: Tables, rotation: Rotation): Promise<Rotated | null> {
  const { refreshTokens, users } = tables
  const { tokenHash, child } = rotation
  if (!refreshTokens.match({ tokenHash }) || !refreshTokens.match(child)) return null
  if (!connection.dialect.writesInWith) {
    return connection.lockedTogether('refreshTokens.rotate', (db) => rotateStepByStep(db, connection.dialect, tables, rotation))
  }
  const [row] = await connection.statement('refreshTokens.rotate', (db) => rotateInOneStatement(db, tables, rotation))
  return row ? { token: refreshTokens.toRecord(row), user: users.toRecord(row) } : null
}

/** Unspent, unrevoked and unexpired. */
function rotatable(query: Knex.QueryBuilder, { refreshTokens }: Tables, { tokenHash, at }: Rotation): Knex.QueryBuilder {
  return query
    .where(refreshTokens.where({ tokenHash, usedAt: null, revokedAt: null }))
    .where(refreshTokens.column('expiresAt'), '>', refreshTokens.value('expiresAt', at))
    .where(refreshTokens.column('familyExpiresAt'), '>', refreshTokens.value('familyExpiresAt', at))
}

/**
 * Hold the user, spend the token, insert the child: each part takes its row from the one before, so they run in this
 * order. Safe although all parts share one snapshot, because both rows that decide are locked or written here, and
 * whoever had to wait for such a row judges it again as it is then (EvalPlanQual, PostgreSQL manual 13.2.1):
 * - deactivate changed the user first: `held` comes back empty;
 * - a reset changed the user and revoked the token, or another caller spent it: `spent` comes back empty;
 * - a revocation came later: it waits for the spent row, and its next round sees the child.
 * The guards stand in both parts: the first keeps a dead token from locking anybody, the second decides.
 */
async function rotateInOneStatement(db: Knex, tables: Tables, rotation: Rotation): Promise<Row[]> {
  const { refreshTokens, users } = tables
  const held = rotatable(db(refreshTokens.name), tables, rotation)
    .join(users.name, users.column('id'), refreshTokens.column('userId'))
    .where(users.where({ isActive: true }))
    .select([...users.selection])
    .forUpdate(users.name)
  const spent = rotatable(db(refreshTokens.name), tables, rotation)
    .updateFrom('held')
    .where(refreshTokens.column('userId'), db.ref(`held.${users.alias('id')}`))
    .update(refreshTokens.toRow({ usedAt: rotation.at }))
    .returning([...refreshTokens.selection])
  return db
    .with('held', held)
    .with('spent', spent)
    .with('child', insertChild(db, tables, rotation))
    .select('child.*', 'held.*')
    .from(db.raw('child, held'))
}

/** User, family, amr and absolute end are copied from the spent row, whatever types the columns have. */
function insertChild(db: Knex, { refreshTokens }: Tables, { child, childExpiresAt, at }: Rotation): Knex.Raw {
  const spent = (field: keyof RefreshTokenRecord) => `spent.${refreshTokens.alias(field)}`
  const given = Object.entries(refreshTokens.newRow({ ...child, createdAt: at }))
  const copied = (['userId', 'familyId', 'amr', 'familyExpiresAt'] as const).filter((field) => refreshTokens.fields.has(field))
  const columns = [
    ...given.map(([column]) => column),
    ...copied.map((field) => refreshTokens.bareColumn(field)),
    refreshTokens.bareColumn('parentId'),
    refreshTokens.bareColumn('expiresAt'),
  ]
  const slots = (count: number, slot = '??') => Array(count).fill(slot).join(', ')
  return db.raw(
    `insert into ?? (${slots(columns.length)}) select ${[slots(given.length, '?'), slots(copied.length)].join(', ')}, ??, least(?, ??) from spent ` +
      `returning ${slots(refreshTokens.selection.length)}`,
    [
      refreshTokens.name,
      ...columns,
      ...given.map(([, value]) => value),
      ...copied.map(spent),
      spent('id'),
      refreshTokens.value('expiresAt', childExpiresAt),
      spent('familyExpiresAt'),
      ...refreshTokens.selection,
    ],
  )
}

/** Each statement of the unit decides on rows that it, or one before, holds until the end. */
async function rotateStepByStep(db: Knex, dialect: Dialect, tables: Tables, rotation: Rotation): Promise<Rotated | null> {
  const held = dialect.rowLocks ? await holdThenSpend(db, tables, rotation) : await spendThenRead(db, tables, rotation)
  if (!held) return null
  const token = childOf(tables.refreshTokens.toRecord(held), rotation)
  await db(tables.refreshTokens.name).insert(tables.refreshTokens.newRow(token))
  return { token, user: tables.users.toRecord(held) }
}

/**
 * One locking read of both rows: STRAIGHT_JOIN reads, and so locks, in the order written, the user first like every unit
 * that holds one. Whose token it is says a sub-select, which locks nothing (MySQL manual, Locking Reads) and need not,
 * since that never changes. The rows themselves are as they are once their holders are gone (InnoDB), and stay so.
 */
async function holdThenSpend(db: Knex, tables: Tables, rotation: Rotation): Promise<Row | null> {
  const { refreshTokens, users } = tables
  const owner = rotatable(db(refreshTokens.name), tables, rotation).select(refreshTokens.column('userId')).limit(1)
  const held = rotatable(db(users.name), tables, rotation)
    .joinRaw('straight_join ??', [refreshTokens.name])
    .where(users.column('id'), owner)
    .where(users.where({ isActive: true }))
    .where(refreshTokens.column('userId'), db.ref(users.column('id')))
    .select([...refreshTokens.selection, ...users.selection])
    .forUpdate()
  const [row]: Row[] = await held
  if (!row) return null
  await db(refreshTokens.name)
    .where(refreshTokens.where({ id: refreshTokens.read(row, 'id') }))
    .update(refreshTokens.toRow({ usedAt: rotation.at }))
  return row
}

/** The first write holds the whole file against every other writer: what it saw of the user stays so. */
async function spendThenRead(db: Knex, tables: Tables, rotation: Rotation): Promise<Row | null> {
  const { refreshTokens, users } = tables
  const owner = db(users.name)
    .where(users.column('id'), db.ref(refreshTokens.column('userId')))
    .where(users.where({ isActive: true }))
  const [spent]: Row[] = await rotatable(db(refreshTokens.name), tables, rotation)
    .whereExists(owner.select(db.raw('1')))
    .update(refreshTokens.toRow({ usedAt: rotation.at }))
    .returning([...refreshTokens.selection])
  if (!spent) return null
  const [user]: Row[] = await db(users.name)
    .where(users.where({ id: refreshTokens.read(spent, 'userId') }))
    .select([...users.selection])
  return user ? { ...spent, ...user } : null
}

function childOf(parent: RefreshTokenRecord, { child, childExpiresAt, at }: Rotation): RefreshTokenRecord {
  const expiresAt = new Date(Math.min(childExpiresAt.getTime(), parent.familyExpiresAt.getTime()))
  return { ...parent, ...child, parentId: parent.id, expiresAt, usedAt: null, createdAt: at }
}
