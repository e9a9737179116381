/**
 * Whether a refresh costs the same however many rows the table of sessions has: tokens from all over a table of a thousand
 * and of a million, doorward on SQLite and on PostgreSQL, over HTTP and 16 connections. The tables are filled by the database
 * itself. Fails when doorward misses a goal. `npm run bench -- rows [--rounds 7] [--quick] [--write]`, at a quiet moment.
 */
import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Knex } from 'knex'
import { deriveKeyList } from '../../src/core/keys'
import { makeSessionToken } from '../../src/sessions/find-session'
import { type Connection, mustBe, openConnection, requestText } from './lib/connection.mjs'
import { load, settling } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import { createSchema, hasPostgres } from './lib/postgres-schema.mjs'
import { report } from './lib/report.mjs'
import { measureInRounds } from './lib/rounds.mjs'
import { type Server, startServer } from './lib/start-server.mjs'

const options = readOptions({ rounds: 7 })
const milliseconds = options.quick ? 300 : 1_000
const [few, many] = [1_000, options.quick ? 100_000 : 1_000_000]
const connections = 16
const mostCost = 1.25
/** Of one account. */
const tokensEach = 10

/** The one of servers/doorward.mjs. */
const secret = 'an-only-secret-for-measuring-7f3b9a61'
const end = Date.now() + 7 * 86_400_000
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
const keys = deriveKeyList(secret, 'session-token')

/** The first token of each session is told by its number. */
function seed(number: number): string {
  return makeSessionToken(keys, 'tokens', { id: idOf(number), generation: 0 }, createHash('sha256').update(`seed-${number}`).digest())
}

function idOf(number: number): string {
  const hex = createHash('md5').update(`session-${number}`).digest('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

async function main(): Promise<number> {
  const databases = (await hasPostgres()) ? ['SQLite', 'PostgreSQL'] : ['SQLite']
  const running: Running[] = []
  for (const database of databases) for (const rows of [few, many]) running.push(await run(database, rows))
  const measured = await measureInRounds(
    running.map(({ name }) => name),
    options.rounds,
    async (name) => {
      const figures = await measure(running.find((contestant) => contestant.name === name) as Running) // it is one of these names
      return { ...figures, milliseconds: 1000 / figures.perSecond }
    },
  )
  for (const { stop } of running) await stop()
  const cost = (database: string, key: 'milliseconds' | 'cpuMicros') => measured.ratio(nameOf(database, many), nameOf(database, few), key)
  return report({
    name: 'rows',
    columns: ['doorward', 'refreshes/s', 'p50 ms', 'p99 ms', 'CPU µs', 'cost of few rows'],
    rows: running.map(({ name, database }) => [
      name,
      measured.median(name, 'perSecond').toFixed(0),
      measured.median(name, 'p50'),
      measured.median(name, 'p99'),
      measured.median(name, 'cpuMicros'),
      measured.ratio(name, nameOf(database, few), 'milliseconds'),
    ]),
    goals: databases.flatMap((database) => [
      {
        text: `${database}: time of a refresh, of few rows`,
        presented: cost(database, 'milliseconds'),
        bound: 'at most',
        wanted: mostCost,
      } as const,
      {
        text: `${database}: CPU of a refresh, of few rows`,
        presented: cost(database, 'cpuMicros'),
        bound: 'at most',
        wanted: mostCost,
      } as const,
    ]),
    packages: ['express', 'knex', 'better-sqlite3', 'pg'],
    options,
  })
}

interface Running {
  name: string
  database: string
  rows: number
  server: Server
  open: readonly Connection[]
  /** What became of the tokens that were used. */
  successors: Map<number, string>
  stop(): Promise<void>
}

function nameOf(database: string, rows: number): string {
  return `${database}, ${rows.toLocaleString('en')} rows`
}

async function run(database: string, rows: number): Promise<Running> {
  const { server, stop } = await (database === 'PostgreSQL' ? filledPostgres(rows) : filledSqlite(rows))
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(server.origin)))
  const [first] = open as [Connection] // there are some
  for (const stranger of ['nobody knows it', seed(rows)]) mustBe(401, await first.ask(refreshWith(stranger)))
  const close = async () => {
    for (const connection of open) connection.close()
    await stop()
  }
  return { name: nameOf(database, rows), database, rows, server, open, successors: new Map(), stop: close }
}

const columns = 'id, user_id, kind, token_hash, generation, amr, is_persistent, created_at, last_seen_at, expires_at, ends_at'

// ---- the tables -----------------------------------------------------------------------------------------------------

/** Filled while nothing else is there; the server that made them has them opened, as it will later. */
async function filledSqlite(rows: number) {
  const folder = mkdtempSync(join(tmpdir(), 'doorward-bench-'))
  const server = await startServer('doorward.mjs', { environment: { BENCH_FOLDER: folder } })
  fillSqlite(join(folder, 'app.sqlite'), rows)
  const stop = async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return { server, stop }
}

function fillSqlite(filename: string, rows: number): void {
  const db = new Database(filename)
  db.pragma('synchronous = off')
  db.pragma('cache_size = -262144')
  db.function('token_hash', (number) => hashOf(seed(Number(number))))
  db.function('session_id', (number) => idOf(Number(number)))
  db.function('uuid', { deterministic: false }, () => randomUUID())
  const numbers = (count: number) => `with recursive s (n) as (select 0 union all select n + 1 from s where n < ${count - 1})`
  const indexes = db
    .prepare("select name, sql from sqlite_master where type = 'index' and tbl_name = 'auth_sessions' and sql is not null")
    .all() as { name: string; sql: string }[] // as selected
  db.transaction(() => {
    for (const { name } of indexes) db.exec(`drop index ${name}`) // made at the end, all at once
    db.exec(`create temp table owners as ${numbers(rows / tokensEach)} select n, uuid() as id from s`)
    db.exec(`insert into auth_users (id, is_active, created_at, updated_at, email, hashed_password, is_admin)
      select id, 1, 0, 0, 'owner-' || n || '@example.test', 'x', 0 from owners`)
    db.exec(`create index temp.owners_number on owners (n)`)
    db.exec(`insert into auth_sessions (${columns})
      ${numbers(rows)} select session_id(n), (select id from owners where owners.n = s.n / ${tokensEach}), 'tokens', token_hash(n), 0, 'pwd', 1,
        0, 0, ${end}, ${end} from s`)
    for (const { sql } of indexes) db.exec(sql)
  })()
  db.exec('analyze')
  db.pragma('wal_checkpoint(truncate)')
  db.close()
}

async function filledPostgres(rows: number) {
  const schema = await createSchema()
  const server = await startServer('doorward.mjs', { environment: schema.environment })
  const knex = schema.connect()
  await fillPostgres(knex, rows)
  await knex.destroy()
  const stop = async () => {
    await server.stop()
    await schema.drop()
  }
  return { server, stop }
}

async function fillPostgres(knex: Knex, rows: number): Promise<void> {
  const owner = (number: string) => `cast(md5('owner-' || ${number}) as uuid)`
  const instant = `timestamptz '${new Date(end).toISOString()}'`
  await knex.raw(`insert into auth_users (id, is_active, created_at, updated_at, email, hashed_password, is_admin)
    select ${owner('n')}, true, now(), now(), 'owner-' || n || '@example.test', 'x', false from generate_series(0, ${rows / tokensEach - 1}) as n`)
  for (let from = 0; from < rows; from += 10_000) {
    const numbers = Array.from({ length: Math.min(10_000, rows - from) }, (_, place) => from + place)
    await knex.raw(
      `insert into auth_sessions (${columns})
        select id, ${owner(`(n / ${tokensEach})`)}, 'tokens', hash, 0, 'pwd', true, now(), now(), ${instant}, ${instant}
        from unnest(?::int[], ?::uuid[], ?::text[]) as s (n, id, hash)`,
      [numbers, numbers.map(idOf), numbers.map((number) => hashOf(seed(number)))],
    )
  }
  for (const table of ['auth_users', 'auth_sessions']) await knex.raw(`vacuum analyze ${table}`)
  await knex.raw('checkpoint')
}

// ---- what is measured -----------------------------------------------------------------------------------------------

const refreshWith = (refresh_token: string) => requestText('/auth/refresh', { json: { refresh_token } })

/** Tokens from anywhere in the table; no two connections ask for the same at once. */
function measure({ server, open, rows, successors }: Running) {
  const busy = new Set<number>()
  return load(server, {
    connections: open,
    milliseconds,
    leadIn: settling,
    async operation(connection) {
      const number = freeOne(rows, busy)
      const answer = mustBe(200, await connection.ask(refreshWith(successors.get(number) ?? seed(number))))
      successors.set(number, (JSON.parse(answer.body) as { refresh_token: string }).refresh_token) // a pair
      busy.delete(number)
    },
  })
}

function freeOne(rows: number, busy: Set<number>): number {
  const number = Math.floor(Math.random() * rows)
  if (busy.has(number)) return freeOne(rows, busy)
  busy.add(number)
  return number
}

process.exit(await main())
