/**
 * A refresh route as an expert would write it, with nothing but Express, node:crypto and a database: single use, reuse ends the
 * family, the user is read and must be active. BENCH_THROUGH=driver: prepared statements on the driver itself; knex: through
 * Knex, in as few calls as the database allows.
 */
import { createHash, createHmac, createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import express from 'express'
import { openKnex, openSqlite } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

const lifetime = 30 * 86_400_000
const { BENCH_THROUGH, BENCH_POSTGRES, BENCH_SCHEMA } = process.env

const tables = (id) => [
  `create table users (id ${id} primary key, email varchar(320) not null unique, is_active boolean not null)`,
  `create table refresh_tokens (id ${id} primary key, user_id ${id} not null references users (id), family_id ${id} not null,
    token_hash varchar(64) not null unique, amr varchar(64), expires_at bigint not null, used_at bigint)`,
  'create index refresh_tokens_family on refresh_tokens (family_id)',
  'create index refresh_tokens_user on refresh_tokens (user_id)',
]

/** In one statement, because PostgreSQL can. */
const rotation = `with spent as (update refresh_tokens r set used_at = $2 from users u where r.token_hash = $1 and r.used_at is null
    and r.expires_at > $2 and u.id = r.user_id and u.is_active returning r.user_id, r.family_id, r.amr, u.email),
  child as (insert into refresh_tokens (id, user_id, family_id, token_hash, amr, expires_at)
    select $3, user_id, family_id, $4, amr, $5 from spent)
  select user_id as id, email, amr from spent`
const reuse = `update refresh_tokens set used_at = $2 where used_at is null
  and family_id = (select family_id from refresh_tokens where token_hash = $1)`

async function throughPg() {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString: BENCH_POSTGRES, options: `-c search_path=${BENCH_SCHEMA}`, max: 10 })
  for (const statement of tables('uuid')) await pool.query(statement)
  return {
    async begin(user, hash) {
      await pool.query('insert into users (id, email, is_active) values ($1, $2, true)', [user.id, user.email])
      const values = [randomUUID(), user.id, randomUUID(), hash, Date.now() + lifetime]
      await pool.query("insert into refresh_tokens values ($1, $2, $3, $4, 'pwd', $5)", values)
    },
    async rotate(hash, next) {
      const now = Date.now()
      const values = [hash, now, randomUUID(), next, now + lifetime]
      const { rows } = await pool.query({ name: 'rotate', text: rotation, values })
      if (!rows[0]) await pool.query(reuse, [hash, now])
      return rows[0]
    },
  }
}

function throughSqlite() {
  const db = openSqlite()
  for (const statement of tables('text')) db.exec(statement)
  const insertUser = db.prepare('insert into users (id, email, is_active) values (?, ?, 1)')
  const insert = db.prepare('insert into refresh_tokens (id, user_id, family_id, token_hash, amr, expires_at) values (?, ?, ?, ?, ?, ?)')
  const spend = db.prepare(
    'update refresh_tokens set used_at = ? where token_hash = ? and used_at is null and expires_at > ? returning user_id, family_id, amr',
  )
  const find = db.prepare('select id, email, is_active from users where id = ?')
  const end = db.prepare(
    'update refresh_tokens set used_at = ? where used_at is null and family_id = (select family_id from refresh_tokens where token_hash = ?)',
  )
  const rotate = db.transaction((hash, next) => {
    const now = Date.now()
    const spent = spend.get(now, hash, now)
    if (!spent) return void end.run(now, hash)
    const user = find.get(spent.user_id)
    if (!user?.is_active) return undefined
    insert.run(randomUUID(), spent.user_id, spent.family_id, next, spent.amr, now + lifetime)
    return { ...user, amr: spent.amr }
  })
  return {
    async begin({ id, email }, hash) {
      insertUser.run(id, email)
      insert.run(randomUUID(), id, randomUUID(), hash, 'pwd', Date.now() + lifetime)
    },
    rotate: async (hash, next) => rotate(hash, next),
  }
}

async function throughKnex() {
  const knex = openKnex()
  for (const statement of tables(BENCH_POSTGRES ? 'uuid' : 'text')) await knex.raw(statement)
  const named = rotation.replaceAll(/\$(\d)/g, ':p$1')
  const endFamily = (db, hash, now) => db.raw(reuse.replace('$2', '?').replace('$1', '?'), [now, hash])

  async function inOneStatement(p1, p4) {
    const p2 = Date.now()
    const { rows } = await knex.raw(named, { p1, p2, p3: randomUUID(), p4, p5: p2 + lifetime })
    if (!rows[0]) await endFamily(knex, p1, p2)
    return rows[0]
  }
  function inTransaction(hash, next) {
    return knex.transaction(async (trx) => {
      const now = Date.now()
      const [spent] = await trx('refresh_tokens')
        .where({ token_hash: hash })
        .whereNull('used_at')
        .where('expires_at', '>', now)
        .update({ used_at: now }, ['user_id', 'family_id', 'amr'])
      if (!spent) return void (await endFamily(trx, hash, now))
      const user = await trx('users').where({ id: spent.user_id }).first('id', 'email', 'is_active')
      if (!user?.is_active) return undefined
      await trx('refresh_tokens').insert({ ...spent, id: randomUUID(), token_hash: next, expires_at: now + lifetime })
      return { ...user, amr: spent.amr }
    })
  }
  return {
    async begin({ id, email }, token_hash) {
      await knex('users').insert({ id, email, is_active: true })
      const row = { id: randomUUID(), user_id: id, family_id: randomUUID(), token_hash, amr: 'pwd', expires_at: Date.now() + lifetime }
      await knex('refresh_tokens').insert(row)
    },
    rotate: BENCH_POSTGRES ? inOneStatement : inTransaction,
  }
}

const key = createSecretKey(randomBytes(48))
const header = encode({ alg: 'HS256', typ: 'JWT' })

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function accessToken({ id, email }, amr) {
  const iat = Math.floor(Date.now() / 1000)
  const signed = `${header}.${encode({ sub: id, email, typ: 'access', amr, iat, exp: iat + 900 })}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

const newToken = () => randomBytes(32).toString('base64url')
const hashOf = (token) => createHash('sha256').update(token).digest('hex')
const answer = (user, amr, refresh_token) => ({
  user_id: user.id,
  access_token: accessToken(user, amr),
  refresh_token,
  mfa_required: false,
  mfa_token: null,
})

await serve(async () => {
  const tokens = await (BENCH_THROUGH === 'knex' ? throughKnex() : BENCH_POSTGRES ? throughPg() : throughSqlite())
  return express()
    .use(express.json())
    .post('/auth/signup', async (req, res) => {
      const [user, token] = [{ id: randomUUID(), email: String(req.body?.email) }, newToken()]
      await tokens.begin(user, hashOf(token))
      res.status(201).json(answer(user, ['pwd'], token))
    })
    .post('/auth/refresh', async (req, res) => {
      const next = newToken()
      const user = await tokens.rotate(hashOf(String(req.body?.refresh_token)), hashOf(next))
      if (!user) return void res.status(401).json({ detail: 'unauthorized', code: 'INVALID_TOKEN', details: {} })
      res.json(answer(user, user.amr.split(','), next))
    })
})
