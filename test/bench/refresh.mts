/**
 * Refresh rotation over HTTP, 16 connections, each with a chain of its own: doorward, hand-written routes through Knex and on the
 * driver itself, on SQLite, PostgreSQL and MariaDB; better-auth renewing a session on the first two. Fails when doorward misses a goal beside the one
 * through Knex. `npm run bench -- refresh [--rounds 9] [--quick] [--write] [--only text]`, at a quiet moment.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Connection, cookieHeader, mustBe, openConnection, requestText, takeCookies } from './lib/connection.mjs'
import { load, settling } from './lib/load.mjs'
import { createDatabase, hasMariadb } from './lib/mariadb-database.mjs'
import { readOptions } from './lib/options.mjs'
import { createSchema, hasPostgres, type Schema } from './lib/postgres-schema.mjs'
import { newPerson } from './lib/products.mjs'
import { type Goal, report } from './lib/report.mjs'
import { type Measured, measureInRounds, roundLength } from './lib/rounds.mjs'
import { type Server, startServer } from './lib/start-server.mjs'

const options = readOptions({ rounds: 9 })
const milliseconds = roundLength(options.quick ? { warmUp: 300, round: 300 } : { warmUp: 6_000, round: 1_800 })
const connections = 16
const mostCpu = 1.15
/** Per rotation, at most. */
const callsOf: Readonly<Record<string, number>> = { PostgreSQL: 1, MariaDB: 3 }

/** Spends what the connection holds and keeps what comes instead. */
type Renew = () => Promise<void>

interface Kind {
  title: string
  file: string
  /** Default: all. */
  databases?: readonly string[]
  environment?: Readonly<Record<string, string>>
  begin(connection: Connection): Promise<Renew>
  /** Throws unless a stranger and a thief are refused. */
  check(connection: Connection): Promise<void>
}

const rotating = { begin: beginChain, check: checkThatItRotates }
const kinds: readonly Kind[] = [
  { title: 'doorward', file: 'doorward.mjs', ...rotating },
  { title: 'by hand, Knex', file: 'refresh-by-hand.mjs', environment: { BENCH_THROUGH: 'knex' }, ...rotating },
  { title: 'by hand, driver', file: 'refresh-by-hand.mjs', environment: { BENCH_THROUGH: 'driver' }, ...rotating },
  {
    title: 'better-auth',
    file: 'refresh-better-auth.mjs',
    databases: ['SQLite', 'PostgreSQL'],
    begin: beginSession,
    check: checkThatItRenews,
  },
]
const chosen = kinds.filter(
  ({ title }) => options.only === null || /^(doorward|by hand, Knex)$/.test(title) || title.includes(options.only),
)

async function main(): Promise<number> {
  const databases = ['SQLite', ...((await hasPostgres()) ? ['PostgreSQL'] : []), ...((await hasMariadb()) ? ['MariaDB'] : [])]
  const running: Running[] = []
  for (const database of databases)
    for (const kind of chosen) if (kind.databases?.includes(database) ?? true) running.push(await run(kind, database))
  const measured = await measureInRounds(
    running.map(({ name }) => name),
    options.rounds,
    (name, round) => measure(running.find((contestant) => contestant.name === name) as Running, milliseconds(round)), // it is one of these names
  )
  for (const { stop } of running) await stop()
  return report({
    name: 'refresh',
    columns: ['Refresh', 'rotations/s', 'of by hand, Knex', 'CPU µs', 'of by hand, Knex', 'p50 ms', 'p99 ms', 'database calls'],
    rows: running.map(({ name, database, calls }) => [
      name,
      measured.median(name, 'perSecond').toFixed(0),
      measured.ratio(name, baselineOf(database), 'perSecond'),
      measured.median(name, 'cpuMicros'),
      measured.ratio(name, baselineOf(database), 'cpuMicros'),
      measured.median(name, 'p50'),
      measured.median(name, 'p99'),
      String(calls),
    ]),
    goals: databases.flatMap((database) => goalsOf(database, measured, running)),
    packages: ['express', 'knex', 'better-sqlite3', 'pg', 'mysql2', 'better-auth'],
    options,
  })
}

// ---- who takes part -------------------------------------------------------------------------------------------------

interface Running {
  name: string
  database: string
  server: Server
  renewals: ReadonlyMap<Connection, Renew>
  /** To the database, for one. */
  calls: number
  stop(): Promise<void>
}

async function run(kind: Kind, database: string): Promise<Running> {
  const name = `${kind.title}, ${database}`
  const calls = await counted(kind, database)
  const { server, stop } = await start(kind, database)
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(server.origin)))
  const [first] = open as [Connection] // there are some
  await kind.check(first)
  const renewals = new Map<Connection, Renew>()
  for (const connection of open) renewals.set(connection, await kind.begin(connection))
  const end = async () => {
    for (const connection of open) connection.close()
    await stop()
  }
  return { name, database, server, renewals, calls, stop: end }
}

const schemas: Readonly<Record<string, () => Promise<Schema>>> = { PostgreSQL: createSchema, MariaDB: createDatabase }

async function start({ file, environment }: Kind, database: string, counting = {}, execArgv: readonly string[] = []) {
  const schema = (await schemas[database]?.()) ?? null
  const server = await startServer(file, { environment: { ...environment, ...schema?.environment, ...counting }, execArgv })
  const stop = async () => {
    await server.stop()
    await schema?.drop()
  }
  return { server, stop }
}

/** In a server of its own, because counting takes time. The third of a chain: the first ones open connections and look around. */
async function counted(kind: Kind, database: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'doorward-bench-'))
  const calls = join(folder, 'calls')
  writeFileSync(calls, '')
  const counter = pathToFileURL(join(import.meta.dirname, 'servers/count-calls.mjs')).href
  const { server, stop } = await start(kind, database, { BENCH_CALLS: calls }, ['--import', counter])
  const connection = await openConnection(server.origin)
  const renew = await kind.begin(connection)
  for (let turn = 0; turn < 2; turn++) await renew()
  const before = readFileSync(calls).length
  await renew()
  const after = readFileSync(calls).length
  connection.close()
  await stop()
  rmSync(folder, { recursive: true })
  return after - before
}

// ---- how each is spoken to ------------------------------------------------------------------------------------------

interface Pair {
  access_token: string
  refresh_token: string
}

async function firstPair(connection: Connection): Promise<Pair> {
  const answer = mustBe(201, await connection.ask(requestText('/auth/signup', { json: newPerson() })))
  return JSON.parse(answer.body) as Pair // the next refresh shows it
}

const refreshWith = (refresh_token: string) => requestText('/auth/refresh', { json: { refresh_token } })

async function beginChain(connection: Connection): Promise<Renew> {
  let { refresh_token: held } = await firstPair(connection)
  return async () => {
    const pair = JSON.parse(mustBe(200, await connection.ask(refreshWith(held))).body) as Pair
    if (!pair.access_token || !pair.refresh_token || pair.refresh_token === held) throw new Error('no new pair')
    held = pair.refresh_token
  }
}

async function checkThatItRotates(connection: Connection): Promise<void> {
  const first = await firstPair(connection)
  const second = JSON.parse(mustBe(200, await connection.ask(refreshWith(first.refresh_token))).body) as Pair
  for (const refused of ['nobody knows it', first.refresh_token, second.refresh_token]) {
    mustBe(401, await connection.ask(refreshWith(refused))) // a stranger; a thief; and whoever the thief stole from
  }
}

const session = (cookies: Record<string, string>) => requestText('/api/auth/get-session', { headers: cookieHeader(cookies) })

async function openSession(connection: Connection): Promise<Record<string, string>> {
  const json = { ...newPerson(), name: 'Ana' }
  return takeCookies(mustBe(200, await connection.ask(requestText('/api/auth/sign-up/email', { json }))))
}

async function beginSession(connection: Connection): Promise<Renew> {
  const request = session(await openSession(connection))
  return async () => {
    const answer = mustBe(200, await connection.ask(request))
    if (answer.body === 'null' || !/^set-cookie:/im.test(answer.head)) throw new Error('not renewed')
  }
}

async function checkThatItRenews(connection: Connection): Promise<void> {
  const cookies = await openSession(connection)
  const expiry = async () => JSON.parse(mustBe(200, await connection.ask(session(cookies))).body)?.session.expiresAt
  const before = await expiry()
  await new Promise((resolve) => setTimeout(resolve, 20))
  if (before === (await expiry())) throw new Error('the end of the session does not move')
  const junk = { 'better-auth.session_token': 'nobody.knows-it' }
  if (mustBe(200, await connection.ask(session(junk))).body !== 'null') throw new Error('a stranger has a session')
}

// ---- what is measured -----------------------------------------------------------------------------------------------

function measure({ server, renewals }: Running, milliseconds: number) {
  return load(server, {
    connections: [...renewals.keys()],
    milliseconds,
    leadIn: settling,
    operation: async (connection) => renewals.get(connection)?.(),
  })
}

function baselineOf(database: string): string {
  return `by hand, Knex, ${database}`
}

function goalsOf(database: string, measured: Measured<'perSecond' | 'cpuMicros'>, running: readonly Running[]): Goal[] {
  const [ours, baseline] = [`doorward, ${database}`, baselineOf(database)]
  const calls = running.find(({ name }) => name === ours)?.calls ?? Number.NaN
  return [
    {
      text: `${database}: rotations/s of by hand, Knex`,
      presented: measured.ratio(ours, baseline, 'perSecond'),
      bound: 'at least',
      wanted: 1,
    },
    {
      text: `${database}: CPU of by hand, Knex`,
      presented: measured.ratio(ours, baseline, 'cpuMicros'),
      bound: 'at most',
      wanted: mostCpu,
    },
    ...(database === 'SQLite'
      ? []
      : [{ text: `${database}: calls per rotation`, presented: calls, bound: 'at most', wanted: callsOf[database] ?? 1 } as const]),
  ]
}

process.exit(await main())
