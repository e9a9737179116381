import type { Knex } from 'knex'
import type { RefreshTokenRecord, Rotation, UserRecord } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import type { Row } from './table'
import { updateReturning } from './update-returning'

type Rotated = { token: RefreshTokenRecord; user: UserRecord }

export async function rotate(connection: Connection, tables: Tables, rotation: Rotation): Promise<Rotated | null> {
  const { refreshTokens, users } = tables
  const { tokenHash, child } = rotation
  if (!refreshTokens.match({ tokenHash }) || !refreshTokens.match(child)) return null
  const [row] = connection.dialect.writesInWith
    ? await connection.statement('refreshTokens.rotate', (db) => rotateInOneStatement(db, tables, rotation))
    : await connection.together('refreshTokens.rotate', (db) => spendThenInsert(db, tables, rotation))
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
    .select(users.selection)
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
  const familyExpiresAt = spent('familyExpiresAt')
  const created: [keyof RefreshTokenRecord, string, Knex.Value | null][] = [
    ['id', '?', refreshTokens.value('id', child.id)],
    ['tokenHash', '?', refreshTokens.value('tokenHash', child.tokenHash)],
    ['createdAt', '?', refreshTokens.value('createdAt', at)],
    ['userId', '??', spent('userId')],
    ['familyId', '??', spent('familyId')],
    ['parentId', '??', spent('id')],
    ['amr', '??', spent('amr')],
    ['familyExpiresAt', '??', familyExpiresAt],
  ]
  const columns = [...created.map(([field]) => refreshTokens.bareColumn(field)), refreshTokens.bareColumn('expiresAt')]
  const slots = (count: number) => Array(count).fill('??').join(', ')
  return db.raw(
    `insert into ?? (${slots(columns.length)}) select ${created.map(([, slot]) => slot).join(', ')}, least(?, ??) from spent ` +
      `returning ${slots(refreshTokens.selection.length)}`,
    [
      refreshTokens.name,
      ...columns,
      ...created.map(([, , value]) => value),
      refreshTokens.value('expiresAt', childExpiresAt),
      familyExpiresAt,
      ...refreshTokens.selection,
    ],
  )
}

/** For databases that write one table per statement; on SQLite the first write holds the whole file. */
async function spendThenInsert(db: Knex, tables: Tables, rotation: Rotation): Promise<Row[]> {
  const { refreshTokens, users } = tables
  const { child, childExpiresAt, at } = rotation
  const active = db(users.name)
    .where(users.where({ isActive: true }))
    .where(users.column('id'), db.ref(refreshTokens.column('userId')))
    .select(db.raw('1'))
  const [row] = await updateReturning(db, refreshTokens, (query) => rotatable(query, tables, rotation).whereExists(active), { usedAt: at })
  if (!row) return []
  const parent = refreshTokens.toRecord(row)
  const token: RefreshTokenRecord = {
    ...parent,
    ...child,
    parentId: parent.id,
    expiresAt: new Date(Math.min(childExpiresAt.getTime(), parent.familyExpiresAt.getTime())),
    usedAt: null,
    createdAt: at,
  }
  await db(refreshTokens.name).insert(refreshTokens.toRow(token))
  return db(refreshTokens.name)
    .join(users.name, users.column('id'), refreshTokens.column('userId'))
    .where(refreshTokens.where({ id: child.id }))
    .select([...refreshTokens.selection, ...users.selection])
}
