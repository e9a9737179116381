/**
 * What `knexOn` saves beside a Knex with a pool of its own, and what names save in a transaction. Refresh and the guard of a session in its
 * table, over HTTP on SQLite and PostgreSQL: CPU time of the server per request. Then the transaction of a login on PostgreSQL, without
 * HTTP and without a hash: transactions a second with and without names. Each round starts every process anew, in another order. Fails when
 * doorward misses a goal. `npm run bench -- app-pool [--rounds 7] [--quick] [--write]`, at a quiet moment.
 */
import { type Connection, mustBe, openConnection, requestText } from './lib/connection.mjs'
import { ask, run } from './lib/guarded.mjs'
import { load } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import { createSchema, hasPostgres } from './lib/postgres-schema.mjs'
import { doorwardSession, logInSomebody, newPerson } from './lib/products.mjs'
import { type Goal, report } from './lib/report.mjs'
import { type Measured, measureInRounds } from './lib/rounds.mjs'
import { startServer } from './lib/start-server.mjs'

const options = readOptions({ rounds: 7 })
/** Milliseconds. Of one start: most of the code is compiled after the first of them. */
const [warmUp, milliseconds] = options.quick ? [700, 700] : [4_000, 4_000]
const connections = 8
const mostCpu: Readonly<Record<string, number>> = { SQLite: 0.8, PostgreSQL: 0.95 }
const leastOfUnnamed = 1.3

type Environment = Readonly<Record<string, string>>

interface Figures {
  perSecond: number
  /** Of the process that is measured, per request or transaction. */
  cpuMicros: number
}

interface Contestant {
  readonly name: string
  readonly baseline: string
  measure(): Promise<Figures>
}

async function main(): Promise<number> {
  const databases = (await hasPostgres()) ? ['SQLite', 'PostgreSQL'] : ['SQLite']
  const all = [...databases.flatMap((database) => [...pair('refresh', database, refresh), ...pair('session guard', database, guard)])]
  if (databases.includes('PostgreSQL')) all.push(...logins())
  const names = all.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, (name) => (all.find((one) => one.name === name) as Contestant).measure(), {
    warmsUp: false, // each starts anew
  })
  return report({
    name: 'app-pool',
    columns: ['What', 'a second', 'of its baseline', 'error', 'CPU µs', 'of its baseline', 'error'],
    rows: all.map(({ name, baseline }) => [
      name,
      measured.median(name, 'perSecond').toFixed(0),
      measured.ratio(name, baseline, 'perSecond'),
      `± ${measured.error(name, baseline, 'perSecond').toFixed(3)}`,
      measured.median(name, 'cpuMicros'),
      measured.ratio(name, baseline, 'cpuMicros'),
      `± ${measured.error(name, baseline, 'cpuMicros').toFixed(3)}`,
    ]),
    goals: goalsOf(databases, measured),
    packages: ['express', 'knex', 'better-sqlite3', 'pg'],
    options,
  })
}

/** Over a pool of Knex's own, the baseline, and over one of the app. */
function pair(title: string, database: string, measure: (environment: Environment) => Promise<Figures>): Contestant[] {
  const baseline = `${title}, ${database}, Knex`
  const contestant = (name: string, own: Environment): Contestant => ({
    name,
    baseline,
    measure: () => within(database, (environment) => measure({ ...environment, ...own })),
  })
  return [contestant(baseline, {}), contestant(`${title}, ${database}, knexOn`, { BENCH_KNEX_ON: '1' })]
}

async function within<T>(database: string, work: (environment: Environment) => Promise<T>): Promise<T> {
  const schema = database === 'PostgreSQL' ? await createSchema() : null
  try {
    return await work(schema?.environment ?? {})
  } finally {
    await schema?.drop()
  }
}

async function refresh(environment: Environment): Promise<Figures> {
  const server = await startServer('doorward.mjs', { environment })
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(server.origin)))
  const held = new Map<Connection, string>()
  for (const connection of open) held.set(connection, await tokenOf(connection, requestText('/auth/signup', { json: newPerson() }), 201))
  const operation = async (connection: Connection) => {
    const refresh_token = held.get(connection) ?? ''
    const next = await tokenOf(connection, requestText('/auth/refresh', { json: { refresh_token } }), 200)
    if (next === refresh_token) throw new Error('no new token')
    held.set(connection, next)
  }
  const figures = await load(server, { connections: open, milliseconds, leadIn: warmUp, operation })
  for (const connection of open) connection.close()
  await server.stop()
  return figures
}

async function tokenOf(connection: Connection, request: string, status: number): Promise<string> {
  const { body } = mustBe(status, await connection.ask(request))
  return (JSON.parse(body) as { refresh_token: string }).refresh_token
}

async function guard(environment: Environment): Promise<Figures> {
  const running = await run(
    {
      name: 'session guard',
      start: () => doorwardSession.start(environment),
      async credentials(connection) {
        const client = await doorwardSession.client(connection)
        return [await logInSomebody(client, connection)]
      },
    },
    connections,
  )
  await ask(running, { milliseconds: warmUp })
  const figures = await ask(running, { milliseconds })
  await running.stop()
  return figures
}

function logins(): Contestant[] {
  const baseline = 'login transaction, PostgreSQL, no names'
  const contestant = (name: string, environment: Environment): Contestant => ({
    name,
    baseline,
    measure: () => within('PostgreSQL', (own) => logInRepeatedly({ ...own, ...environment })),
  })
  return [contestant(baseline, { BENCH_PREPARED: '0' }), contestant('login transaction, PostgreSQL, names', { BENCH_PREPARED: '1' })]
}

async function logInRepeatedly(environment: Environment): Promise<Figures> {
  const server = await startServer('login-store.mjs', { environment })
  const connection = await openConnection(server.origin)
  const loop = async (length: number) =>
    JSON.parse(mustBe(200, await connection.ask(requestText(`/logins?milliseconds=${length}`))).body) as Figures // the server answers them
  await loop(warmUp)
  const figures = await loop(milliseconds)
  connection.close()
  await server.stop()
  return figures
}

function goalsOf(databases: readonly string[], measured: Measured<keyof Figures>): Goal[] {
  const ratio = (title: string, one: string, other: string, key: keyof Figures) =>
    measured.ratio(`${title}, ${one}`, `${title}, ${other}`, key)
  const cpu = databases.flatMap((database) =>
    ['refresh', 'session guard'].map((title): Goal => {
      const presented = ratio(`${title}, ${database}`, 'knexOn', 'Knex', 'cpuMicros')
      return { text: `${title} on ${database}: CPU of Knex`, presented, bound: 'at most', wanted: mostCpu[database] ?? 1 }
    }),
  )
  if (!databases.includes('PostgreSQL')) return cpu
  const presented = ratio('login transaction, PostgreSQL', 'names', 'no names', 'perSecond')
  return [
    ...cpu,
    { text: 'login on PostgreSQL: transactions a second of those without names', presented, bound: 'at least', wanted: leastOfUnnamed },
  ]
}

process.exit(await main())
