/**
 * What a guard costs: CPU time of the server process per request above the same Express app without one, and how many
 * requests it answers beside that one. Each round starts the contestant anew, and with it such an app, and both serve at the
 * same time: what the machine does meanwhile it does to both, and both are equally warm. `first sight`: no token comes twice
 * before doorward has forgotten it; the others remember nothing, so they get the same tokens. Sessions in a table are read at every request,
 * on SQLite and PostgreSQL. Fails when doorward misses a goal.
 * `npm run bench -- guard [--rounds 6] [--quick] [--write] [--only text] [--connections 8]`, at a quiet moment.
 */
import {
  type Algorithm,
  algorithms,
  ask,
  bareOf,
  type Contestant,
  type Headers,
  jwtGuard,
  type Made,
  makeKeys,
  named,
  run,
} from './lib/guarded.mjs'
import type { LoadFigures } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import { createSchema, hasPostgres, type Schema } from './lib/postgres-schema.mjs'
import { authJs, betterAuth, doorwardSession, expressSession, logInSomebody, type Product } from './lib/products.mjs'
import { type Goal, report } from './lib/report.mjs'
import { type Measured, measureInRounds } from './lib/rounds.mjs'

const options = readOptions({ rounds: 6 })
/** Milliseconds; the code is compiled for the most part after the first two thousand of a server's. */
const [warmUp, milliseconds] = options.quick ? [300, 300] : [3_000, 2_000]
const mostAboveExpress = 5
const leastThroughput = 0.93
/** Requests per second of a session of doorward's, beside one of express-session in the same database. */
const leastOfExpressSession = 1.5
/** Five times what doorward can tell apart: sent in turn, each has been forgotten when it comes again, with hardly an exception. */
const firstSight = 5 * 16_384

async function main(): Promise<number> {
  const made = algorithms.map((algorithm) => ({ algorithm, keys: makeKeys(algorithm, firstSight) }))
  const schema = (await hasPostgres()) ? await createSchema() : null
  const [all, bare] = [contestants(made, schema), bareApps(made)]
  const names = all.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, (name) => measure(named(all, name), named(bare, bareOf(name))), {
    warmsUp: false,
  })
  await schema?.drop()
  return report({
    name: 'guard',
    columns: ['Guard', 'requests/s', 'of bare Express', 'CPU µs/request', 'above bare Express', 'p99 ms'],
    rows: names.map((name) => [
      name,
      measured.median(name, 'perSecond').toFixed(0),
      measured.median(name, 'ofBare'),
      measured.median(name, 'cpuMicros'),
      measured.median(name, 'aboveBare'),
      measured.median(name, 'p99'),
    ]),
    goals: [
      ...algorithms.flatMap((algorithm) => goalsOf(algorithm, measured)),
      ...databasesOf(schema).map((name) => sessionGoal(name, measured)),
    ],
    packages: [
      'express',
      'jsonwebtoken',
      'jose',
      'express-jwt',
      'passport-jwt',
      'express-oauth2-jwt-bearer',
      'better-auth',
      '@auth/express',
      'express-session',
      'connect-session-knex',
      'knex',
      'better-sqlite3',
      'pg',
    ],
    options,
    ...(options.connections !== 8 && {
      command: `npm run bench -- guard --rounds ${options.rounds} --connections ${options.connections}`,
    }),
  })
}

// ---- who takes part -------------------------------------------------------------------------------------------------

function bareApps(all: readonly Made[]): Contestant[] {
  return all.map((made) => jwtGuard('bare Express', 'none', made))
}

/** Those that sessions are measured on. */
const databasesOf = (schema: Schema | null) => ['SQLite', ...(schema ? ['PostgreSQL'] : [])]

function contestants(all: readonly Made[], schema: Schema | null): Contestant[] {
  const [hs256, , rs256] = all as [Made, Made, Made] // one for each algorithm
  const chosen = [
    ...bareApps(all),
    ...all.map((made) => jwtGuard('doorward, repeated', 'doorward', made, 64)),
    ...all.map((made) => jwtGuard('doorward, first sight', 'doorward', made)),
    ...all.map((made) => jwtGuard('jsonwebtoken by hand', 'jsonwebtoken', made)),
    ...all.map((made) => jwtGuard('jose by hand', 'jose', made)),
    ...all.map((made) => jwtGuard('express-jwt', 'express-jwt', made)),
    ...[hs256, rs256].map((made) => jwtGuard('passport-jwt', 'passport-jwt', made)),
    jwtGuard('express-oauth2-jwt-bearer', 'express-oauth2-jwt-bearer', rs256),
    ...databasesOf(schema).flatMap((database) => {
      const environment = database === 'PostgreSQL' ? schema?.environment : {}
      return [doorwardSession, expressSession].map((product) => sessionGuard(`${product.name}, ${database}`, product, environment))
    }),
    sessionGuard('better-auth, session in its table', betterAuth),
    sessionGuard('better-auth, session in a cookie', betterAuth, { BENCH_COOKIE_CACHE: '1' }),
    sessionGuard('Auth.js, session in a cookie', authJs),
  ]
  return chosen.filter(
    ({ name }) =>
      options.only === null || /^(bare|doorward|jsonwebtoken|express-jwt|express-session)/.test(name) || name.includes(options.only),
  )
}

function sessionGuard(name: string, product: Product, environment = {}): Contestant {
  return {
    name,
    start: () => product.start(environment),
    async credentials(connection) {
      const client = await product.client(connection)
      const people: Headers[] = []
      while (people.length < 16) people.push(await logInSomebody(client, connection))
      return people
    },
  }
}

// ---- what is measured -----------------------------------------------------------------------------------------------

type Figure = 'perSecond' | 'cpuMicros' | 'p99' | 'ofBare' | 'aboveBare'

/** At the same time as the bare app: what the two differ by is not the machine's. */
async function measure(contestant: Contestant, bare: Contestant): Promise<Record<Figure, number>> {
  const both = await Promise.all([contestant, bare].map((one) => run(one, options.connections)))
  await Promise.all(both.map((one) => ask(one, { milliseconds: warmUp })))
  const [own, beside] = (await Promise.all(both.map((one) => ask(one, { milliseconds })))) as [LoadFigures, LoadFigures] // as many
  await Promise.all(both.map(({ stop }) => stop()))
  const { perSecond, cpuMicros, p99 } = own
  return { perSecond, cpuMicros, p99, ofBare: perSecond / beside.perSecond, aboveBare: cpuMicros - beside.cpuMicros }
}

function goalsOf(algorithm: Algorithm, measured: Measured<Figure>): Goal[] {
  const [repeated, first, expressJwt] = ['doorward, repeated', 'doorward, first sight', 'express-jwt'].map(
    (name) => `${name}, ${algorithm}`,
  )
  const above = (name = '') => measured.median(name, 'aboveBare')
  return [
    { text: `${algorithm}, repeated, µs above bare Express`, presented: above(repeated), bound: 'at most', wanted: mostAboveExpress },
    { text: `${algorithm}, first sight, µs above bare Express`, presented: above(first), bound: 'at most', wanted: above(expressJwt) },
    {
      text: `${algorithm}, repeated, throughput of bare Express`,
      presented: measured.median(repeated ?? '', 'ofBare'),
      bound: 'at least',
      wanted: leastThroughput,
    },
  ]
}

function sessionGoal(database: string, measured: Measured<Figure>): Goal {
  return {
    text: `session on ${database}, requests/s of express-session`,
    presented: measured.ratio(`doorward, session, ${database}`, `express-session, ${database}`, 'perSecond'),
    bound: 'at least',
    wanted: leastOfExpressSession,
  }
}

process.exit(await main())
