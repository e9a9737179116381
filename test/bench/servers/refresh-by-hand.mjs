/**
 * A refresh route as an expert would write it, with nothing but Express, node:crypto and a database: one row a session, one guarded
 * UPDATE a refresh, the user must be active, and a token that was used before ends its session. BENCH_THROUGH=driver: prepared
 * statements on the driver itself; knex: through Knex. MariaDB's UPDATE returns no rows, so there a SELECT comes before
 * it, and it finds the row by its key: found by the token, two refreshes at once deadlock on a gap in that index.
 */
import { createHash, createHmac, createSecretKey, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import express from 'express'
import { openKnex, openSqlite } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

const lifetime = 30 * 86_400_000
const { BENCH_THROUGH, BENCH_POSTGRES, BENCH_MARIADB, BENCH_SCHEMA } = process.env

const tables = (id) => [
  `create table users (id ${id} primary key, email varchar(320) not null unique, is_active boolean not null)`,
  `create table sessions (id ${id} primary key, user_id ${id} not null references users (id), token_hash varchar(64) not null unique,
    amr varchar(64) not null, rotated_at bigint, expires_at bigint not null, revoked_at bigint)`,
  'create index sessions_user on sessions (user_id)',
]

const insertUser = 'insert into users (id, email, is_active) values (:id, :email, true)'
const insertSession = "insert into sessions (id, user_id, token_hash, amr, expires_at) values (:session, :id, :hash, 'pwd', :end)"
const rotation = `update sessions set token_hash = :next, rotated_at = :now, expires_at = :end
  where token_hash = :hash and revoked_at is null and expires_at > :now
    and exists (select 1 from users where users.id = sessions.user_id and is_active)
  returning user_id as id, amr, (select email from users where users.id = sessions.user_id) as email`
const findRotatable = `select user_id as id, amr, email from sessions join users on users.id = sessions.user_id
  where token_hash = :hash and revoked_at is null and expires_at > :now and is_active`
const rotationOfFound = `update sessions set token_hash = :next, rotated_at = :now, expires_at = :end
  where id = :session and token_hash = :hash and revoked_at is null and expires_at > :now`
const revocation = 'update sessions set revoked_at = :now where id = :session and revoked_at is null'

/** Runs a statement; the rows that it returns, or how many it changed (MariaDB). */
async function open() {
  if (BENCH_THROUGH === 'knex') return throughKnex()
  if (BENCH_MARIADB) return throughMysql2()
  return BENCH_POSTGRES ? throughPg() : throughSqlite()
}

async function throughPg() {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString: BENCH_POSTGRES, options: `-c search_path=${BENCH_SCHEMA}`, max: 10 })
  for (const statement of tables('uuid')) await pool.query(statement)
  const prepared = new Map([insertUser, insertSession, rotation, revocation].map((text, index) => [text, numbered(text, `s${index}`)]))
  return async (text, values) => {
    const { names, query } = prepared.get(text)
    return (await pool.query({ ...query, values: names.map((name) => values[name]) })).rows
  }
}

/** PostgreSQL numbers its parameters. */
function numbered(text, name) {
  const names = [...new Set([...text.matchAll(/:(\w+)/g)].map(([, found]) => found))]
  return { names, query: { name, text: text.replaceAll(/:(\w+)/g, (_, found) => `$${names.indexOf(found) + 1}`) } }
}

async function throughMysql2() {
  const { default: mysql2 } = await import('mysql2/promise')
  const pool = mysql2.createPool({ uri: `${BENCH_MARIADB}${BENCH_SCHEMA}`, connectionLimit: 10, namedPlaceholders: true })
  for (const statement of tables('varchar(36)')) await pool.query(statement)
  return async (text, values) => rowsOrCount(await pool.execute(text, values))
}

const rowsOrCount = ([answer]) => (Array.isArray(answer) ? answer : answer.affectedRows)

function throughSqlite() {
  const db = openSqlite()
  for (const statement of tables('text')) db.exec(statement)
  const prepared = new Map([insertUser, insertSession, rotation, revocation].map((text) => [text, db.prepare(text)]))
  return async (text, values) => {
    const statement = prepared.get(text)
    return statement.reader ? statement.all(values) : [statement.run(values)]
  }
}

async function throughKnex() {
  const knex = openKnex()
  const id = BENCH_POSTGRES ? 'uuid' : BENCH_MARIADB ? 'varchar(36)' : 'text'
  for (const statement of tables(id)) await knex.raw(statement)
  return async (text, values) => {
    const answer = await knex.raw(text, values)
    if (BENCH_MARIADB) return rowsOrCount(answer)
    return BENCH_POSTGRES ? answer.rows : answer
  }
}

const [key, tokenKey] = [createSecretKey(randomBytes(48)), createSecretKey(randomBytes(48))]
const header = encode({ alg: 'HS256', typ: 'JWT' })

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function accessToken({ id, email }, amr) {
  const iat = Math.floor(Date.now() / 1000)
  const signed = `${header}.${encode({ sub: id, email, typ: 'access', amr, iat, exp: iat + 900 })}`
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

/** It names its session, under a MAC: nobody ends a session by a made-up token. */
function newToken(session) {
  const named = `${session}.${randomBytes(32).toString('base64url')}`
  return `${named}.${macOf(named)}`
}

function sessionOf(token) {
  const [session = '', random = '', mac = ''] = token.split('.')
  const right = macOf(`${session}.${random}`)
  return mac.length === right.length && timingSafeEqual(Buffer.from(mac), Buffer.from(right)) ? session : null
}

const macOf = (text) => createHmac('sha256', tokenKey).update(text).digest('base64url')
const hashOf = (token) => createHash('sha256').update(token).digest('hex')
const answer = (user, amr, refresh_token) => ({
  user_id: user.id,
  access_token: accessToken(user, amr),
  refresh_token,
  mfa_required: false,
  mfa_token: null,
})

await serve(async () => {
  const run = await open()

  async function rotateRow(values) {
    const [user] = await run(BENCH_MARIADB ? findRotatable : rotation, values)
    return BENCH_MARIADB && user && (await run(rotationOfFound, values)) !== 1 ? undefined : user
  }

  async function rotate(token, session) {
    const [next, now] = [newToken(session), Date.now()]
    const user = await rotateRow({ session, hash: hashOf(token), next: hashOf(next), now, end: now + lifetime })
    if (!user) await run(revocation, { session, now })
    return user && answer(user, user.amr.split(' '), next)
  }

  return express()
    .use(express.json())
    .post('/auth/signup', async (req, res) => {
      const [user, session] = [{ id: randomUUID(), email: String(req.body?.email) }, randomUUID()]
      const token = newToken(session)
      await run(insertUser, user)
      await run(insertSession, { session, id: user.id, hash: hashOf(token), end: Date.now() + lifetime })
      res.status(201).json(answer(user, ['pwd'], token))
    })
    .post('/auth/refresh', async (req, res) => {
      const token = String(req.body?.refresh_token)
      const session = sessionOf(token)
      const pair = session === null ? null : await rotate(token, session)
      if (!pair) return void res.status(401).json({ detail: 'unauthorized', code: 'INVALID_TOKEN', details: {} })
      res.json(pair)
    })
})
