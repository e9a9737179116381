/**
 * Logins by password with 64 in flight: how many, as a share of what the hash alone makes of this machine in the same round,
 * and how long a GET of the host waits meanwhile. Fails when doorward misses a goal.
 * `npm run bench -- login [--rounds 4] [--quick] [--write] [--only text]`, at a quiet moment.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connection, mustBe, openConnection, requestText } from './lib/connection.mjs'
import { load, settling } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import {
  authJs,
  betterAuth,
  betterAuthArgon2,
  byHand,
  byHandOnKnex,
  byHandUngated,
  doorward,
  doorwardNodeRs,
  newPerson,
  type Person,
  passport,
} from './lib/products.mjs'
import { report } from './lib/report.mjs'
import { measureInRounds, roundLength } from './lib/rounds.mjs'
import { first, ping, type RunningProduct, runProduct, signUpSomebody } from './lib/run-product.mjs'
import { startServer } from './lib/start-server.mjs'
import { quantile } from './lib/statistics.mjs'

const options = readOptions({ rounds: 4 })
const milliseconds = roundLength(options.quick ? { warmUp: 1_000, round: 1_000 } : { warmUp: 12_000, round: 2_500 })
const inFlight = 64
/** So many that nobody gets to `maxSessionsPerUser`, past which each login revokes a session. */
const peoplePerConnection = 2
/** The burst that a flood begins with is over. */
const settled = 400
const pingEvery = 5
const byNodeRs = 1.6

type Figure = 'perSecond' | 'cpuMicros' | 'p50' | 'ping50' | 'ping99'
type Figures = Readonly<Record<Figure, number>>

interface Entrant {
  name: string
  /** Whose share of the machine its logins are. */
  engine: string
  measure(milliseconds: number): Promise<Figures>
  stop(): Promise<void>
}

async function main(): Promise<number> {
  const entrants = await startAll()
  const names = entrants.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, async (name, round) =>
    first(entrants.filter((one) => one.name === name)).measure(milliseconds(round)),
  )
  for (const { stop } of entrants) await stop()
  const perSecond = (name: string) => measured.median(name, 'perSecond')
  const share = ({ name, engine }: Entrant) => measured.ratio(name, rawName(engine), 'perSecond')
  const [ours, theirs] = [doorward.name, byHand.name].map((name) => first(entrants.filter((one) => one.name === name))) as [
    Entrant,
    Entrant,
  ] // both
  const peers = names.filter((name) => !/^(doorward|raw)/.test(name))
  return report({
    name: 'login',
    columns: ['Login, 64 in flight', 'logins/s', 'of the raw hash', 'CPU ms/login', 'p50 ms', 'ping p50 ms', 'ping p99 ms'],
    rows: entrants.map((entrant) => [
      entrant.name,
      perSecond(entrant.name),
      share(entrant),
      measured.median(entrant.name, 'cpuMicros') / 1000,
      ...(['p50', 'ping50', 'ping99'] as const).map((key) => measured.median(entrant.name, key)),
    ]),
    goals: [
      { text: 'share of the raw hash rate, against by hand', presented: share(ours), bound: 'at least', wanted: share(theirs) },
      { text: 'share of the raw hash rate, the aim', presented: share(ours), bound: 'at least', wanted: 0.95 },
      {
        text: 'p99 of a ping meanwhile, ms, against by hand',
        presented: measured.median(doorward.name, 'ping99'),
        bound: 'at most',
        wanted: measured.median(byHand.name, 'ping99'),
      },
      {
        text: 'logins with @node-rs/argon2, of the best peer',
        presented: Math.min(...peers.map((peer) => measured.ratio(doorwardNodeRs.name, peer, 'perSecond'))),
        bound: 'at least',
        wanted: byNodeRs,
      },
    ],
    packages: [
      'express',
      'argon2',
      '@node-rs/argon2',
      'better-sqlite3',
      'knex',
      'passport',
      'passport-local',
      'better-auth',
      '@auth/express',
    ],
    options,
  })
}

const rawName = (engine: string) => `raw hash, ${engine}`

async function startAll(): Promise<Entrant[]> {
  const products = [
    { product: doorward, engine: 'argon2' },
    { product: doorwardNodeRs, engine: '@node-rs/argon2' },
    { product: byHand, engine: 'argon2' },
    { product: byHandOnKnex, engine: 'argon2' },
    { product: byHandUngated, engine: 'argon2' },
    { product: passport, engine: 'argon2' },
    { product: authJs, engine: 'argon2' },
    { product: betterAuth, engine: 'scrypt' },
    { product: betterAuthArgon2, engine: 'argon2' },
  ].filter(({ product: { name } }) => options.only === null || /^doorward|^by hand$/.test(name) || name.includes(options.only))
  const entrants: Entrant[] = []
  for (const engine of new Set(products.map((one) => one.engine))) entrants.push(await rawHash(engine))
  for (const { product, engine } of products) entrants.push(await logins(await runProduct(product, inFlight), engine))
  return entrants
}

async function rawHash(engine: string): Promise<Entrant> {
  const server = await startServer('raw-hash.mjs', { environment: { BENCH_ENGINE: engine } })
  const connection = await openConnection(server.origin)
  return {
    name: rawName(engine),
    engine,
    async measure(milliseconds) {
      mustBe(200, await connection.ask(requestText(`/?milliseconds=${settling}`)))
      const request = requestText(`/?milliseconds=${milliseconds / 2}`)
      const before = await server.ask('usage')
      const answer = mustBe(200, await connection.ask(request)).body
      const { verified, perSecond } = JSON.parse(answer) as { verified: number; perSecond: number } // as the server writes it
      const { cpuMicros } = await server.ask('usage')
      return { perSecond, cpuMicros: (cpuMicros - before.cpuMicros) / verified, p50: Number.NaN, ping50: Number.NaN, ping99: Number.NaN }
    },
    async stop() {
      connection.close()
      await server.stop()
    },
  }
}

async function logins(running: RunningProduct, engine: string): Promise<Entrant> {
  const { name, server, client, connections, stop } = running
  const people: Person[] = [await signUpSomebody(running)]
  for (let round = 0; round < peoplePerConnection; round++)
    await Promise.all(
      connections.map(async (connection) => {
        const person = newPerson()
        const { status, body } = await connection.ask(client.signUp(person))
        if (status >= 300) throw new Error(`${name}: a signup answered ${status} ${body}`)
        people.push(person)
      }),
    )
  const requests = people.map((person) => client.logIn(person))
  const host = await openConnection(server.origin)
  return {
    name,
    engine,
    async measure(milliseconds) {
      const flood = (milliseconds: number) =>
        load(server, {
          connections,
          milliseconds,
          async operation(connection, turn) {
            const answer = await connection.ask(requests[turn % requests.length] ?? '')
            if (!client.isLoggedIn(answer)) throw new Error(`${name}: a login answered ${answer.status} ${answer.body}`)
          },
        })
      await flood(settling)
      const pinged = pingFor(host, milliseconds)
      const figures = await flood(milliseconds)
      const waits = await pinged
      return { ...figures, ping50: quantile(waits, 0.5), ping99: quantile(waits, 0.99) }
    },
    async stop() {
      host.close()
      await stop()
    },
  }
}

/** One every 5 ms; a late answer also stands for those that would have been sent meanwhile. */
async function pingFor(connection: Connection, duration: number): Promise<number[]> {
  const end = performance.now() + duration
  const waits: number[] = []
  await sleep(settled)
  while (performance.now() < end) {
    const begun = performance.now()
    await ping(connection)
    const waited = performance.now() - begun
    for (let wait = waited; wait > 0; wait -= pingEvery) waits.push(wait)
    await sleep(Math.max(0, pingEvery - waited))
  }
  return waits
}

process.exit(await main())
