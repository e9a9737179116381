import type { Knex } from 'knex'
import type { RefreshTokenRecord, Rotation, UserRecord } from '../auth-store'
import type { Tables } from './default-tables'
import type { Queryable } from './queryable'
import { answered, answeredOfUser, places, rotatable } from './rotatable'
import type { Values } from './table'

/**
 * Parent and child, inserted together: the parent is there already, so for it the insert becomes the update that spends it.
 * A single write, and SQLite knows one writer: what the statement saw of token and user stays so until it is done.
 *
 * They meet on the hash, the one column that is unique in every host's table. A child with a hash that is taken would update
 * another's row: then the statement fails as a whole, by a number that has no absolute value (`isRefusedChild` of the
 * driver's errors). Nothing that an index holds is set, because SQLite writes each index of a column that is, the same value too.
 */
export function rotateByUpsert(db: Queryable, tables: Tables, rotation: Rotation): Knex.Raw {
  const { refreshTokens } = tables
  const { columns, ofParent, ofChild } = parentAndChild(db, tables, rotation)
  const [tokenHash, usedAt] = [refreshTokens.bareColumn('tokenHash'), refreshTokens.bareColumn('usedAt')]
  const token = refreshTokens.select(answered)
  const user = answeredOfUser.map((field) => ofOwner(db, tables, field))
  return db.raw(
    `with spent as materialized ? insert into ?? (${places(columns, '??')}) ` +
      `select ${places(ofParent)} from spent union all select ${places(ofChild)} from spent where true ` +
      `on conflict (??) do update set ${spend} returning ${places(token, '??')}, ${places(user)}`,
    [
      spendable(db, tables, rotation),
      refreshTokens.name,
      ...columns,
      ...ofParent,
      ...ofChild,
      tokenHash,
      usedAt,
      `excluded.${usedAt}`,
      `excluded.${usedAt}`,
      `excluded.${usedAt}`,
      ...token,
      ...user,
    ],
  )
}

// Where it would be another's row the number does not exist. A column is in it: SQLite may compute a constant before it reads a row.
const spend = '?? = case when ?? is null then abs(-9223372036854775808 + (?? is not null)) else ?? end'

/** The token as its table has it, while its user is active. */
function spendable(db: Queryable, tables: Tables, rotation: Rotation): Knex.QueryBuilder {
  const { refreshTokens, users } = tables
  return rotatable(db(refreshTokens.name), tables, rotation)
    .join(users.name, users.column('id'), refreshTokens.column('userId'))
    .where(users.where({ isActive: true }))
    .select([...refreshTokens.fields].map((field) => `${refreshTokens.column(field)} as ${refreshTokens.alias(field)}`))
}

/** The columns, and what the two rows have in each. */
function parentAndChild(db: Queryable, { refreshTokens }: Tables, { child, childExpiresAt, at }: Rotation) {
  const spent = (field: keyof RefreshTokenRecord) => db.ref(`spent.${refreshTokens.alias(field)}`)
  const asItIs: Values = Object.fromEntries([...refreshTokens.fields].map((field) => [refreshTokens.bareColumn(field), spent(field)]))
  const inChild: Values = {
    ...asItIs,
    [refreshTokens.bareColumn('id')]: null, // unless the next line says another, the database makes it
    ...refreshTokens.newRow({ ...child, createdAt: at, usedAt: null }),
    [refreshTokens.bareColumn('parentId')]: spent('id'),
    [refreshTokens.bareColumn('expiresAt')]: db.raw('min(?, ?)', [
      refreshTokens.value('expiresAt', childExpiresAt),
      spent('familyExpiresAt'),
    ]),
  }
  const inParent: Values = { ...inChild, ...asItIs, ...refreshTokens.toRow({ usedAt: at }) }
  const columns = Object.keys(inChild)
  return { columns, ofParent: Object.values(inParent), ofChild: Object.values(inChild) }
}

/** RETURNING knows the written table alone. Nobody asks for the parent's. */
function ofOwner(db: Queryable, { refreshTokens, users }: Tables, field: keyof UserRecord): Knex.Raw {
  const owner = db(users.name)
    .where(users.column('id'), db.ref(refreshTokens.column('userId')))
    .select([...users.select([field])])
  return db.raw('case when ?? is null then ? end as ??', [refreshTokens.column('usedAt'), owner, users.alias(field)])
}
