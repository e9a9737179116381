import type { Knex } from 'knex'
import type { Rotated, Rotation, SessionRecord } from '../auth-store'
import type { Connection } from './connection'
import type { Tables } from './default-tables'
import type { Queryable, Row } from './queryable'
import { compiledFor, compiledSelect, compiledUpdate, slotsOf } from './statements'

const answered = ['id', 'userId', 'amr', 'authenticatedAt', 'isPersistent', 'expiresAt'] as const satisfies readonly (keyof SessionRecord)[]

/** A revocation writes the session's row too, so a rotation waits for it and checks the changed row: no lock of the user's row. */
export async function rotateSession(connection: Connection, tables: Tables, rotation: Rotation): Promise<Rotated | null> {
  const { sessions } = tables
  const { tokenHash, successorHash } = rotation
  if (!sessions.match({ tokenHash }) || !sessions.match({ tokenHash: successorHash })) return null
  const { dialect } = connection
  if (!dialect.returning) return readThenRotate(connection, tables, rotation)
  const [row] = await connection.statement('sessions.rotate', (db) => dialect.run(db, updateOf[dialect.least](db, tables, rotation)))
  return row ? rotatedFrom(row, tables) : null
}

function rotatedFrom(row: Row, { sessions, users }: Tables): Rotated {
  const userId = sessions.read(row, 'userId')
  return {
    session: {
      id: sessions.read(row, 'id'),
      userId,
      amr: sessions.fields.has('amr') ? sessions.read(row, 'amr') : '',
      authenticatedAt: sessions.read(row, 'authenticatedAt'),
      isPersistent: sessions.read(row, 'isPersistent'),
      expiresAt: sessions.read(row, 'expiresAt'),
    },
    user: { id: userId, email: users.read(row, 'email') },
  }
}

type Build = ReturnType<typeof compiledFor<Rotation>>

const updateOf: Readonly<Record<'least' | 'min', Build>> = { least: updateBy('least'), min: updateBy('min') }

function updateBy(least: 'least' | 'min'): Build {
  return compiledFor<Rotation>((db, tables) => {
    const { sessions, users } = tables
    const rotation = slotsOf<Rotation>(['tokenHash', 'successorHash', 'generation', 'expiresAt', 'at'])
    const owner = (db: Queryable) => db(users.name).where(users.column('id'), db.ref(sessions.column('userId')))
    const end = db.raw(`${least}(?, ??)`, [sessions.value('expiresAt', rotation.expiresAt) ?? '', sessions.column('endsAt')])
    return rotatable(db(sessions.name), tables, rotation)
      .whereExists(
        owner(db)
          .where(users.where({ isActive: true }))
          .select(db.raw('1')),
      )
      .update({ ...changesOf(tables, rotation), [sessions.bareColumn('expiresAt')]: end })
      .returning([...sessions.select(answered), db.raw('(?) as ??', [owner(db).select(users.column('email')), users.alias('email')])])
  })
}

/** UPDATE returns no rows, so a SELECT reads first. By the token, two rotations could deadlock on a gap in its index. */
async function readThenRotate(connection: Connection, tables: Tables, rotation: Rotation): Promise<Rotated | null> {
  const { sessions } = tables
  const { dialect } = connection
  const { tokenHash, at } = rotation
  const [row] = await connection.statement('sessions.rotate', (db) => selectRotatable(db, dialect, tables, { tokenHash, at }))
  if (!row) return null
  const id = sessions.read(row, 'id')
  const expiresAt = new Date(Math.min(rotation.expiresAt.getTime(), sessions.read(row, 'endsAt').getTime()))
  const count = await connection.statement('sessions.rotate', (db) => updateRotatable(db, dialect, tables, { ...rotation, id, expiresAt }))
  return count === 1 ? rotatedFrom({ ...row, ...sessions.asRow({ expiresAt }) }, tables) : null
}

const selectRotatable = compiledSelect<Pick<Rotation, 'tokenHash' | 'at'>>(['tokenHash', 'at'], (db, tables, wanted) => {
  const { sessions, users } = tables
  return rotatable(db(sessions.name), tables, wanted)
    .join(users.name, users.column('id'), sessions.column('userId'))
    .where(users.where({ isActive: true }))
    .select([...sessions.select([...answered, 'endsAt']), ...users.select(['email'])])
    .limit(1)
})

const updateRotatable = compiledUpdate<Rotation & { id: string }>(
  ['id', 'tokenHash', 'successorHash', 'generation', 'expiresAt', 'at'],
  (db, tables, rotation) => {
    const { sessions } = tables
    const { id, expiresAt } = rotation
    return rotatable(db(sessions.name), tables, rotation)
      .where(sessions.where({ id }))
      .update({ ...changesOf(tables, rotation), ...sessions.toRow({ expiresAt }) })
  },
)

function rotatable(
  query: Knex.QueryBuilder,
  { sessions }: Tables,
  { tokenHash, at }: Pick<Rotation, 'tokenHash' | 'at'>,
): Knex.QueryBuilder {
  return query
    .where(sessions.where({ tokenHash, kind: 'tokens', revokedAt: null }))
    .where(sessions.column('expiresAt'), '>', sessions.value('expiresAt', at))
}

function changesOf({ sessions }: Tables, { successorHash, generation, at }: Rotation) {
  return sessions.toRow({ tokenHash: successorHash, generation, rotatedAt: at, lastSeenAt: at })
}
