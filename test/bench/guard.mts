/**
 * What a guard costs: CPU time of the server process per request above the same Express app without one, and how many
 * requests it answers beside that one. Each round starts the contestant anew, and with it such an app, and both serve at the
 * same time: what the machine does meanwhile it does to both, and both are equally warm. `first sight`: no token comes twice
 * before doorward has forgotten it; the others remember nothing, so they get the same tokens. Fails when doorward misses a goal.
 * `npm run bench -- guard [--rounds 6] [--quick] [--write] [--only text]`, at a quiet moment.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { deriveKey } from '../../src/keys'
import { type Connection, openConnection, requestText } from './lib/connection.mjs'
import { type LoadFigures, load } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import { authJs, betterAuth, logInSomebody, type Product } from './lib/products.mjs'
import { type Goal, report } from './lib/report.mjs'
import { type Measured, measureInRounds } from './lib/rounds.mjs'
import { type Server, startServer } from './lib/start-server.mjs'

const options = readOptions({ rounds: 6 })
/** Milliseconds; the code is compiled for the most part after the first two thousand of a server's. */
const [warmUp, milliseconds] = options.quick ? [300, 300] : [3_000, 2_000]
/** To each of the two. */
const connections = 8
const mostAboveExpress = 5
const leastThroughput = 0.93
/** Five times what doorward can tell apart: sent in turn, each has been forgotten when it comes again, with hardly an exception. */
const firstSight = 5 * 16_384

type Algorithm = 'HS256' | 'ES256' | 'RS256'
const algorithms: readonly Algorithm[] = ['HS256', 'ES256', 'RS256']

interface Contestant {
  name: string
  start(): Promise<Server>
  /** Who may pass, as headers. */
  credentials(connection: Connection): Promise<readonly Headers[]>
}
type Headers = Readonly<Record<string, string>>

interface Keys {
  /** `firstSight` of them as doorward's, and some that name the issuer and the audience that one guard insists on. */
  own: readonly Headers[]
  issued: readonly Headers[]
  /** What `servers/guard.mjs` makes its key of. */
  environment: Readonly<Record<string, string>>
}

async function main(): Promise<number> {
  const made = algorithms.map((algorithm) => ({ algorithm, keys: makeKeys(algorithm) }))
  const [all, bare] = [contestants(made), bareApps(made)]
  const names = all.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, (name) => measure(named(all, name), named(bare, bareOf(name))), {
    warmsUp: false,
  })
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
    goals: algorithms.flatMap((algorithm) => goalsOf(algorithm, measured)),
    packages: [
      'express',
      'jsonwebtoken',
      'jose',
      'express-jwt',
      'passport-jwt',
      'express-oauth2-jwt-bearer',
      'better-auth',
      '@auth/express',
    ],
    options,
  })
}

// ---- who takes part -------------------------------------------------------------------------------------------------

function bareApps(all: readonly Made[]): Contestant[] {
  return all.map((made) => jwtGuard('bare Express', 'none', made))
}

function contestants(all: readonly Made[]): Contestant[] {
  const [hs256, , rs256] = all as [Made, Made, Made] // one for each algorithm
  const chosen = [
    ...bareApps(all),
    ...all.map((made) => jwtGuard('doorward, repeated', 'doorward', made, 64)),
    ...all.map((made) => jwtGuard('doorward, first sight', 'doorward', made)),
    ...all.map((made) => jwtGuard('jsonwebtoken by hand', 'jsonwebtoken', made)),
    ...all.map((made) => jwtGuard('jose by hand', 'jose', made)),
    ...[hs256, rs256].flatMap((made) => [jwtGuard('express-jwt', 'express-jwt', made), jwtGuard('passport-jwt', 'passport-jwt', made)]),
    jwtGuard('express-oauth2-jwt-bearer', 'express-oauth2-jwt-bearer', rs256),
    sessionGuard('better-auth, session in its table', betterAuth),
    sessionGuard('better-auth, session in a cookie', betterAuth, { BENCH_COOKIE_CACHE: '1' }),
    sessionGuard('Auth.js, session in a cookie', authJs),
  ]
  return chosen.filter(({ name }) => options.only === null || /^(bare|doorward|jsonwebtoken)/.test(name) || name.includes(options.only))
}

interface Made {
  algorithm: Algorithm
  keys: Keys
}

function jwtGuard(title: string, guard: string, { algorithm, keys }: Made, tokens = firstSight): Contestant {
  return {
    name: `${title}, ${algorithm}`,
    start: () => startServer('guard.mjs', { environment: { ...keys.environment, BENCH_GUARD: guard } }),
    credentials: async () => (guard === 'express-oauth2-jwt-bearer' ? keys.issued : keys.own.slice(0, tokens)),
  }
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

function makeKeys(algorithm: Algorithm): Keys {
  const jwtSecret = randomBytes(48).toString('base64')
  const { privateKey } =
    algorithm === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength: 2048 })
  const secret = deriveKey(jwtSecret, 'access')
  const [issuer, audience] = ['https://id.example.test/', 'bench']
  const sign = signer(algorithm === 'HS256' ? secret : privateKey, algorithm)
  const keys = { jwtSecret, secret: secret.export().toString('base64'), privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
  return {
    own: Array.from({ length: firstSight }, () => sign()),
    issued: Array.from({ length: 500 }, () => sign({ issuer, audience })),
    environment: { BENCH_ALGORITHM: algorithm, BENCH_KEYS: JSON.stringify({ ...keys, issuer, audience }) },
  }
}

function signer(key: KeyObject, algorithm: Algorithm): (more?: jwt.SignOptions) => Headers {
  return (more = {}) => {
    const iat = Math.floor(Date.now() / 1000)
    const claims = { amr: ['pwd'], email: 'ana@example.test', exp: iat + 3600, iat, sub: randomUUID(), typ: 'access' }
    const token = jwt.sign(claims, key, { algorithm, ...(algorithm !== 'HS256' && { keyid: 'bench' }), ...more })
    return { authorization: `Bearer ${token}` }
  }
}

// ---- what is measured -----------------------------------------------------------------------------------------------

interface Running {
  name: string
  server: Server
  connections: readonly Connection[]
  requests: readonly string[]
  /** How many were sent. */
  sent: number
  stop(): Promise<void>
}

async function run({ name, start, credentials }: Contestant): Promise<Running> {
  const server = await start()
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(server.origin)))
  const [first] = open as [Connection] // there are some
  const headers = await credentials(first)
  await checkThatItGuards(name, first, headers)
  const requests = headers.map((given) => requestText('/protected', { headers: given }))
  const stop = () => {
    for (const connection of open) connection.close()
    return server.stop()
  }
  return { name, server, connections: open, requests, sent: 0, stop }
}

/** 200 with what it gave out, 401 without and with a character changed; else it is not measured. */
async function checkThatItGuards(name: string, connection: Connection, headers: readonly Headers[]): Promise<void> {
  const [good = {}] = headers
  const spoiled = Object.fromEntries(Object.entries(good).map(([header, value]) => [header, spoil(value)]))
  const seen = []
  for (const given of [good, good, {}, spoiled]) seen.push((await connection.ask(requestText('/protected', { headers: given }))).status)
  const wanted = name.startsWith('bare') ? [200, 200, 200, 200] : [200, 200, 401, 401]
  if (seen.join() !== wanted.join()) throw new Error(`${name} answered ${seen.join()}`)
}

/** Changes a character of every cookie's value, or of the token's claims. */
function spoil(value: string): string {
  return value.replace(/(Bearer [^.]+\.|=)(...)./g, (_, before, kept) => `${before}${kept}-`)
}

type Figure = 'perSecond' | 'cpuMicros' | 'p99' | 'ofBare' | 'aboveBare'

/** At the same time as the bare app: what the two differ by is not the machine's. */
async function measure(contestant: Contestant, bare: Contestant): Promise<Record<Figure, number>> {
  const both = await Promise.all([run(contestant), run(bare)])
  await Promise.all(both.map((one) => ask(one, warmUp)))
  const [own, beside] = (await Promise.all(both.map((one) => ask(one, milliseconds)))) as [LoadFigures, LoadFigures] // as many
  await Promise.all(both.map(({ stop }) => stop()))
  const { perSecond, cpuMicros, p99 } = own
  return { perSecond, cpuMicros, p99, ofBare: perSecond / beside.perSecond, aboveBare: cpuMicros - beside.cpuMicros }
}

function ask(one: Running, milliseconds: number): Promise<LoadFigures> {
  const { server, requests, name } = one
  return load(server, {
    connections: one.connections,
    milliseconds,
    async operation(connection) {
      const { status } = await connection.ask(requests[one.sent++ % requests.length] ?? '')
      if (status !== 200) throw new Error(`${name} answered ${status}`)
    },
  })
}

function named(all: readonly Contestant[], name: string): Contestant {
  const found = all.find((contestant) => contestant.name === name)
  if (!found) throw new Error(`${name} does not take part`)
  return found
}

/** Its tokens are as long: reading a header is not the guard's. */
function bareOf(name: string): string {
  return `bare Express, ${algorithms.find((algorithm) => name.endsWith(algorithm)) ?? 'HS256'}`
}

function goalsOf(algorithm: Algorithm, measured: Measured<Figure>): Goal[] {
  const [repeated, first, byHand] = ['doorward, repeated', 'doorward, first sight', 'jsonwebtoken by hand'].map(
    (name) => `${name}, ${algorithm}`,
  )
  const above = (name = '') => measured.median(name, 'aboveBare')
  return [
    { text: `${algorithm}, repeated, µs above bare Express`, shown: above(repeated), bound: 'at most', wanted: mostAboveExpress },
    { text: `${algorithm}, first sight, µs above bare Express`, shown: above(first), bound: 'at most', wanted: above(byHand) },
    {
      text: `${algorithm}, repeated, throughput of bare Express`,
      shown: measured.median(repeated ?? '', 'ofBare'),
      bound: 'at least',
      wanted: leastThroughput,
    },
  ]
}

process.exit(await main())
