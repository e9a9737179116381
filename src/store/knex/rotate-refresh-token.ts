import { DuplicateRecordError, type RefreshTokenRecord, type Rotated, type Rotation, type UserRecord } from '../auth-store'
import { Slot } from './column-values'
import { compileOnce } from './compiled-for'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import type { Dialect } from './dialect'
import type { Queryable, Statement } from './queryable'
import { answeredOfUser, rotatable } from './rotatable'
import { rotateByUpsert } from './rotate-by-upsert'
import { rotateInWith } from './rotate-in-with'
import type { Row, Table } from './table'

export async function rotate(connection: Connection, tables: Tables, rotation: Rotation): Promise<Rotated | null> {
  const { refreshTokens } = tables
  const { tokenHash, child } = rotation
  if (!refreshTokens.match({ tokenHash }) || !refreshTokens.match(child)) return null
  if (child.tokenHash === tokenHash) throw new DuplicateRecordError('refreshTokens.rotate: the child has the hash of its parent')
  const { dialect } = connection
  if (!dialect.returning) return connection.lockedTogether('refreshTokens.rotate', (db) => rotateStepByStep(db, tables, rotation))
  const rows = await connection.statement('refreshTokens.rotate', (db) => dialect.run(db, statementFor(db, dialect, tables, rotation)))
  const row = rows.find((row) => refreshTokens.read(row, 'usedAt') === null)
  return row ? rotatedFrom(row, tables, child.tokenHash) : null
}

/** The child's hash is the one it was given. */
function rotatedFrom(row: Row, { refreshTokens, users }: Tables, tokenHash: string): Rotated {
  return {
    token: {
      tokenHash,
      userId: refreshTokens.read(row, 'userId'),
      amr: refreshTokens.fields.has('amr') ? refreshTokens.read(row, 'amr') : null,
      expiresAt: refreshTokens.read(row, 'expiresAt'),
    },
    user: ownerFrom(row, users),
  }
}

function ownerFrom(row: Row, users: Table<UserRecord>): Rotated['user'] {
  return { id: users.read(row, 'id'), email: users.read(row, 'email') }
}

const compiled = new WeakMap<Tables, (rotation: Rotation) => Statement>()

/** Compiled once per set of tables; what a host fills its own columns with may have another shape each time. */
function statementFor(db: Queryable, dialect: Dialect, tables: Tables, rotation: Rotation): Statement {
  const build = dialect.writesInWith ? rotateInWith : rotateByUpsert
  if (tables.refreshTokens.hostFillsColumns) return build(db, tables, rotation).toSQL()
  const statement = compiled.get(tables) ?? compileOnce<Rotation>(build(db, tables, rotationOfSlots()))
  compiled.set(tables, statement)
  return statement(rotation)
}

/** A table takes a slot wherever it takes a value. */
function rotationOfSlots(): Rotation {
  const slot = (read: (rotation: Rotation) => unknown) => new Slot(read)
  return {
    tokenHash: slot(({ tokenHash }) => tokenHash),
    child: { id: slot(({ child }) => child.id), tokenHash: slot(({ child }) => child.tokenHash) },
    childExpiresAt: slot(({ childExpiresAt }) => childExpiresAt),
    at: slot(({ at }) => at),
  } as unknown as Rotation // as it says
}

/** Each statement decides on rows that it, or one before, holds until the end. */
async function rotateStepByStep(db: Queryable, tables: Tables, rotation: Rotation): Promise<Rotated | null> {
  const held = await holdThenSpend(db, tables, rotation)
  if (!held) return null
  const token = childOf(tables.refreshTokens.toRecord(held), rotation)
  await db(tables.refreshTokens.name).insert(tables.refreshTokens.newRow(token))
  const { tokenHash, userId, amr, expiresAt } = token
  return { token: { tokenHash, userId, amr, expiresAt }, user: ownerFrom(held, tables.users) }
}

/**
 * One locking read of both rows: STRAIGHT_JOIN reads, and so locks, in the order written, the user first like every unit
 * that holds one. Whose token it is says a sub-select, which locks nothing (MySQL manual, Locking Reads) and need not,
 * since that never changes. The rows themselves are as they are once their holders are gone (InnoDB), and stay so.
 */
async function holdThenSpend(db: Queryable, tables: Tables, rotation: Rotation): Promise<Row | null> {
  const { refreshTokens, users } = tables
  const owner = rotatable(db(refreshTokens.name), tables, rotation).select(refreshTokens.column('userId')).limit(1)
  const held = rotatable(db(users.name), tables, rotation)
    .joinRaw('straight_join ??', [refreshTokens.name])
    .where(users.column('id'), owner)
    .where(users.where({ isActive: true }))
    .where(refreshTokens.column('userId'), db.ref(users.column('id')))
    .select([...refreshTokens.selection, ...users.select(answeredOfUser)])
    .forUpdate()
  const [row]: Row[] = await held
  if (!row) return null
  await db(refreshTokens.name)
    .where(refreshTokens.where({ id: refreshTokens.read(row, 'id') }))
    .update(refreshTokens.toRow({ usedAt: rotation.at }))
  return row
}

function childOf(parent: RefreshTokenRecord, { child, childExpiresAt, at }: Rotation): RefreshTokenRecord {
  const expiresAt = new Date(Math.min(childExpiresAt.getTime(), parent.familyExpiresAt.getTime()))
  return { ...parent, ...child, parentId: parent.id, expiresAt, usedAt: null, createdAt: at }
}
