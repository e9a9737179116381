/**
 * What the hand-written servers keep: users, identities, and one row a session with the hash of its refresh token. On the driver itself with prepared
 * statements, which is as few and as fast as they get, or with BENCH_STORE=knex through Knex, as doorward does it.
 */
import { randomUUID } from 'node:crypto'
import { openKnex, openSqlite } from './open-database.mjs'

const lifetime = 30 * 86_400_000

export function createAccounts() {
  return process.env.BENCH_STORE === 'knex' ? throughKnex(openKnex()) : onDriver(openSqlite())
}

function onDriver(database) {
  for (const statement of schema) database.exec(statement)
  const sql = (text) => database.prepare(text)
  const [byEmail, byId] = [sql('select * from users where email = ?'), sql('select * from users where id = ?')]
  const insertUser = sql('insert into users (id, email, hashed_password) values (?, ?, ?)')
  const seen = sql('update users set last_login_at = ? where id = ?')
  const insertSession = sql('insert into sessions (id, user_id, token_hash, amr, expires_at, created_at) values (?, ?, ?, ?, ?, ?)')
  const identity = sql('select user_id from identities where provider = ? and subject = ?')
  const insertIdentity = sql('insert into identities (provider, subject, user_id, email, last_login_at) values (?, ?, ?, ?, ?)')
  const identitySeen = sql('update identities set last_login_at = ? where provider = ? and subject = ?')

  function insert(email, hash) {
    const id = randomUUID()
    insertUser.run(id, email, hash)
    return { id, email }
  }
  return {
    byEmail: (email) => byEmail.get(email),
    insert,
    /** A login: its session, and when it was. */
    logIn: database.transaction((userId, tokenHash, amr) => {
      const now = Date.now()
      seen.run(now, userId)
      insertSession.run(randomUUID(), userId, tokenHash, amr, now + lifetime, now)
    }),
    /** The account of an identity, made at its first login. */
    byIdentity: database.transaction((provider, subject, email) => {
      const known = identity.get(provider, subject)
      if (known) {
        identitySeen.run(Date.now(), provider, subject)
        return byId.get(known.user_id)
      }
      const user = insert(email.toLowerCase(), null)
      insertIdentity.run(provider, subject, user.id, email, Date.now())
      return byId.get(user.id)
    }),
  }
}

async function throughKnex(knex) {
  for (const statement of schema) await knex.raw(statement)

  async function insert(email, hash, db = knex) {
    const user = { id: randomUUID(), email }
    await db('users').insert({ ...user, hashed_password: hash })
    return user
  }
  return {
    byEmail: (email) => knex('users').where({ email }).first(),
    insert,
    logIn: (userId, tokenHash, amr) =>
      knex.transaction(async (trx) => {
        const now = Date.now()
        await trx('users').where({ id: userId }).update({ last_login_at: now })
        const session = { id: randomUUID(), user_id: userId, token_hash: tokenHash, amr, expires_at: now + lifetime, created_at: now }
        await trx('sessions').insert(session)
      }),
    async byIdentity(provider, subject, email) {
      const link = { provider, subject }
      const known = await knex('identities').join('users', 'users.id', 'user_id').where(link).first('users.*')
      if (known) {
        await knex('identities').where(link).update({ last_login_at: Date.now() })
        return known
      }
      return knex.transaction(async (trx) => {
        const user = await insert(email.toLowerCase(), null, trx)
        await trx('identities').insert({ ...link, user_id: user.id, email, last_login_at: Date.now() })
        return user
      })
    },
  }
}

const schema = [
  `create table users (id text primary key, email text not null unique, hashed_password text, is_active integer not null default 1,
    last_login_at integer)`,
  `create table identities (provider text not null, subject text not null, user_id text not null references users (id), email text,
    last_login_at integer, primary key (provider, subject))`,
  'create index identities_user on identities (user_id)',
  `create table sessions (id text primary key, user_id text not null references users (id), token_hash text not null unique,
    amr text not null, expires_at integer not null, created_at integer not null)`,
  'create index sessions_user on sessions (user_id)',
]
