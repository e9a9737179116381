import type { Knex } from 'knex'
import type { RefreshTokenRecord, Rotation } from '../auth-store'
import type { Tables } from './default-tables'
import type { Queryable } from './queryable'
import { answered, answeredOfUser, inherited, places, rotatable } from './rotatable'

/**
 * Hold the user, spend the token, insert the child: each part takes its row from the one before, so they run in this
 * order. Safe although all parts share one snapshot, because both rows that decide are locked or written here, and
 * whoever had to wait for such a row judges it again as it is then (EvalPlanQual, PostgreSQL manual 13.2.1):
 * - deactivate changed the user first: `held` comes back empty;
 * - a reset changed the user and revoked the token, or another caller spent it: `spent` comes back empty;
 * - a revocation came later: it waits for the spent row, and its next round sees the child.
 * The guards stand in both parts: the first keeps a dead token from locking anybody, the second decides.
 */
export function rotateInWith(db: Queryable, tables: Tables, rotation: Rotation): Knex.QueryBuilder {
  const { refreshTokens, users } = tables
  const held = rotatable(db(refreshTokens.name), tables, rotation)
    .join(users.name, users.column('id'), refreshTokens.column('userId'))
    .where(users.where({ isActive: true }))
    .select([...users.select(answeredOfUser)])
    .forUpdate(users.name)
  const spent = rotatable(db(refreshTokens.name), tables, rotation)
    .updateFrom('held')
    .where(refreshTokens.column('userId'), db.ref(`held.${users.alias('id')}`))
    .update(refreshTokens.toRow({ usedAt: rotation.at }))
    .returning([...refreshTokens.select(['id', ...inherited])])
  return db
    .queryBuilder()
    .with('held', held)
    .with('spent', spent)
    .with('child', insertChild(db, tables, rotation))
    .select('child.*', 'held.*')
    .from(db.raw('child, held'))
}

function insertChild(db: Queryable, { refreshTokens }: Tables, { child, childExpiresAt, at }: Rotation): Knex.Raw {
  const spent = (field: keyof RefreshTokenRecord) => `spent.${refreshTokens.alias(field)}`
  const given = Object.entries(refreshTokens.newRow({ ...child, createdAt: at }))
  const copied = inherited.filter((field) => refreshTokens.fields.has(field))
  const answer = refreshTokens.select(answered)
  const columns = [
    ...given.map(([column]) => column),
    ...copied.map((field) => refreshTokens.bareColumn(field)),
    refreshTokens.bareColumn('parentId'),
    refreshTokens.bareColumn('expiresAt'),
  ]
  return db.raw(
    `insert into ?? (${places(columns, '??')}) select ${places(given)}, ${places(copied, '??')}, ??, least(?, ??) from spent ` +
      `returning ${places(answer, '??')}`,
    [
      refreshTokens.name,
      ...columns,
      ...given.map(([, value]) => value),
      ...copied.map(spent),
      spent('id'),
      refreshTokens.value('expiresAt', childExpiresAt),
      spent('familyExpiresAt'),
      ...answer,
    ],
  )
}
