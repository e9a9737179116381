import { ConfigurationError } from '../../errors'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import type { Move, UsersKey } from './version'

/**
 * The table that contains the server-side sessions during the move. It is needed because the old and the new table are both named
 * `auth_sessions`.
 */
const waiting = 'auth_sessions_moving'

const cookieColumns = ['id', 'user_id', 'session_hash', 'amr', 'ip', 'user_agent', 'created_at', 'last_seen_at', 'expires_at']
const refreshTokenColumns = [
  ...['id', 'user_id', 'token_hash', 'family_id', 'parent_id', 'amr'],
  ...['expires_at', 'family_expires_at', 'used_at', 'revoked_at', 'created_at'],
]

/**
 * Moves two tables into one: each valid refresh token and each live server-side session becomes a row of the new `auth_sessions`. So every
 * person stays signed in. Stop the processes of an earlier version before the move. The move accepts only tables with exactly the old
 * columns. The move copies a row before it drops the row.
 */
export const moveSessions: Move = {
  record: 'sessions',
  replaces: ['auth_refresh_tokens', 'auth_sessions'],

  async begin(db, dialect) {
    await isOld(db, 'auth_refresh_tokens', refreshTokenColumns) // throws before anything is written
    const columns = await columnsOf(db, 'auth_sessions')
    if (columns.size === 0 || columns.has('token_hash')) return
    if (!(await isOld(db, 'auth_sessions', cookieColumns))) throw notOurs('auth_sessions')
    if (dialect.name === 'mysql' && (await columnsOf(db, waiting)).size === 0) {
      await db.raw(`rename table auth_sessions to ${waiting}`) // one step, because MariaDB commits at CREATE TABLE
      return
    }
    const listed = cookieColumns.join(', ')
    if ((await columnsOf(db, waiting)).size === 0)
      await db.raw(`create table ${waiting} as select ${listed} from auth_sessions where 1 = 0`)
    await db.raw(
      `insert into ${waiting} (${listed}) select ${listed} from auth_sessions
       where not exists (select 1 from ${waiting} moved where moved.id = auth_sessions.id)`,
    )
    await db.raw('drop table auth_sessions')
  },

  async finish(db, dialect, users, now) {
    if ((await columnsOf(db, waiting)).size > 0) {
      await moveCookies(db, dialect, users, now)
      await db.raw(`drop table ${waiting}`)
    }
    if (await isOld(db, 'auth_refresh_tokens', refreshTokenColumns)) {
      await moveRefreshTokens(db, dialect, users, now)
      await db.raw('drop table auth_refresh_tokens')
    }
  },
}

/**
 * Returns true if the table is our table of release 0.1.0, and false for another table of this name.
 * @throws ConfigurationError if the table has our columns and further columns
 */
async function isOld(db: Queryable, table: string, ours: readonly string[]): Promise<boolean> {
  const columns = await columnsOf(db, table)
  if (!ours.every((column) => columns.has(column))) return false
  if (columns.size > ours.length) throw notOurs(table)
  return true
}

function notOurs(table: string): ConfigurationError {
  return new ConfigurationError(
    `createAuthTables(): the table ${table} has columns that release 0.1.0 did not make, so it is not moved; rename it, or drop those columns (docs/upgrading.md).`,
  )
}

/**
 * Returns the columns of the table, in the names of the database. Reads only the schema in which we make our tables, because a search path
 * can find another table elsewhere.
 */
async function columnsOf(db: Queryable, table: string): Promise<ReadonlySet<string>> {
  const found = Object.keys(await db(table).columnInfo())
  return new Set(found.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)))
}

const columns =
  'id, user_id, kind, token_hash, generation, rotated_at, amr, authenticated_at, is_persistent, ip, user_agent, created_at, last_seen_at, expires_at, ends_at'

const maxDays = 30

/** Moves the server-side sessions. The old sessions had no absolute expiry, so each moved session gets an absolute expiry. */
async function moveCookies(db: Queryable, dialect: Dialect, users: UsersKey, now: Date): Promise<void> {
  const { instant } = dialect.types
  const end = dialect.instantToColumn(new Date(now.getTime() + maxDays * 86_400_000))
  await db.raw(
    `insert into auth_sessions (${columns})
     select old.id, old.user_id, 'session', old.session_hash, 0, null, old.amr, old.created_at, true, old.ip, old.user_agent, old.created_at,
       old.last_seen_at, case when old.expires_at < cast(? as ${instant}) then old.expires_at else cast(? as ${instant}) end, cast(? as ${instant})
     from ${waiting} old
     where old.expires_at > ? and exists (select 1 from ${users.table} where ${users.table}.${users.key} = old.user_id)
       and not exists (select 1 from auth_sessions moved where moved.id = old.id)`,
    [end, end, end, dialect.instantToColumn(now)],
  )
}

/**
 * Moves the refresh tokens. All old tokens with the same `family_id` become one session, which began when its first token was made. If
 * several tokens of a session are valid, the move keeps only one of them.
 */
async function moveRefreshTokens(db: Queryable, dialect: Dialect, users: UsersKey, now: Date): Promise<void> {
  const at = dialect.instantToColumn(now)
  const isPostgresql = dialect.name === 'postgresql'
  const id = isPostgresql ? 'cast(living.family_id as uuid)' : 'living.family_id'
  const begun =
    'coalesce((select min(earlier.created_at) from auth_refresh_tokens earlier where earlier.family_id = living.family_id), living.created_at)'
  const isLiving = (token: string) =>
    `${token}.used_at is null and ${token}.revoked_at is null and ${token}.expires_at > ? and ${token}.family_expires_at > ?`
  await db.raw(
    `insert into auth_sessions (${columns})
     select ${id}, living.user_id, 'tokens', living.token_hash, 0, case when living.parent_id is null then null else living.created_at end,
       coalesce(living.amr, ''), ${begun}, true, null, null, ${begun}, living.created_at, living.expires_at, living.family_expires_at
     from auth_refresh_tokens living
     where ${isLiving('living')} and living.family_id ${isPostgresql ? '~' : 'like'} ?
       and exists (select 1 from ${users.table} where ${users.table}.${users.key} = living.user_id)
       and not exists (select 1 from auth_refresh_tokens other
         where other.family_id = living.family_id and other.id > living.id and ${isLiving('other')})
       and not exists (select 1 from auth_sessions moved where moved.id = ${id})`,
    [at, at, isPostgresql ? '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' : '________-____-____-____-____________', at, at],
  )
}
