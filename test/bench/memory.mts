/**
 * What doorward holds: memory of an idle host beside one with all that doorward depends on; heap kept per request, by the
 * difference after a collection; heap after a flood of distinct keys, as large as its bound and twice that. Fails when doorward
 * misses a goal. `npm run bench -- memory [--rounds 5] [--quick] [--write]`, at a quiet moment.
 */
import { type Connection, mustBe, openConnection, requestText } from './lib/connection.mjs'
import { load } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import { doorward, logInSomebody } from './lib/products.mjs'
import { type Goal, report } from './lib/report.mjs'
import { measureInRounds } from './lib/rounds.mjs'
import { baseline, hosts, makeHostDatabase } from './lib/run-host.mjs'
import { type Server, startServer } from './lib/start-server.mjs'

const options = readOptions({ rounds: 5 })
const requests = options.quick ? 1_000 : 8_000
const execArgv = ['--expose-gc']
const connections = 16
const mebibyte = 2 ** 20

const mostOfDependencies = 1.15
/** Bytes. A collection leaves that much here and there: what bare Express shows is as much. */
const mostPerRequest = 48
/** Of twice as many keys as the bound, beside as many as the bound. */
const mostGrowth = 1.1

type Cells = (string | number)[]

async function main(): Promise<number> {
  const idle = await measureIdle()
  const kept = await measureRequests()
  const floods = await measureFloods()
  return report({
    name: 'memory',
    columns: ['Heap and RSS in MiB', 'before', 'after', 'shown'],
    rows: [...idle.rows, ...kept.rows, ...floods.rows],
    goals: [...idle.goals, ...kept.goals, ...floods.goals],
    packages: ['express', 'knex', 'better-sqlite3', 'better-auth', '@auth/express'],
    options,
  })
}

interface Part {
  rows: Cells[]
  goals: Goal[]
}

// ---- idle -----------------------------------------------------------------------------------------------------------

async function measureIdle(): Promise<Part> {
  const database = await makeHostDatabase()
  const names = [...hosts.keys()]
  const measured = await measureInRounds(names, options.rounds, async (name) => {
    const environment = { ...database.environment, BENCH_WITH: hosts.get(name) ?? '' }
    const server = await startServer('idle.mjs', { environment, execArgv })
    const { rssBytes, heapBytes } = await server.ask('gc')
    await server.stop()
    return { rss: rssBytes / mebibyte, heap: heapBytes / mebibyte }
  })
  database.remove()
  const ratio = (name: string) => measured.ratio(name, baseline, 'rss')
  return {
    rows: names.map((name) => [
      `idle, ${name}: heap, RSS, of its dependencies`,
      measured.median(name, 'heap'),
      measured.median(name, 'rss'),
      ratio(name),
    ]),
    goals: [
      { text: 'RSS of an idle host, of its dependencies', presented: ratio('doorward'), bound: 'at most', wanted: mostOfDependencies },
    ],
  }
}

// ---- per request ----------------------------------------------------------------------------------------------------

type Operation = (connection: Connection) => Promise<unknown>

async function measureRequests(): Promise<Part> {
  const server = await startServer('doorward.mjs', { execArgv })
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(server.origin)))
  const [first] = open as [Connection] // there are some
  const guarded = requestText('/protected', { headers: await logInSomebody(await doorward.client(first), first) })
  mustBe(401, await first.ask(requestText('/protected')))
  const chains = new Map<Connection, Operation>()
  for (const connection of open) chains.set(connection, await refreshChain(connection))
  const operations: Record<string, Operation> = {
    'a host’s own route': async (connection) => mustBe(200, await connection.ask(requestText('/ping'))),
    'a guarded route': async (connection) => mustBe(200, await connection.ask(guarded)),
    'a refused token': async (connection) => mustBe(401, await connection.ask(spoiled())),
    'a refused login': async (connection) => mustBe(422, await connection.ask(requestText('/auth/login', { json: { email: 'x' } }))),
    'a refresh': async (connection) => chains.get(connection)?.(connection),
  }
  const kept: Record<string, number> = {}
  const rows: Cells[] = []
  for (const [name, operation] of Object.entries(operations)) {
    const [before, after] = await heapsOf(server, open, operation)
    kept[name] = (after - before) / requests
    rows.push([
      `${name}: heap after ${2 * requests} and ${3 * requests}, bytes per request`,
      before / mebibyte,
      after / mebibyte,
      kept[name],
    ])
  }
  for (const connection of open) connection.close()
  await server.stop()
  const goals = Object.entries(kept).map(
    ([name, presented]): Goal => ({ text: `Bytes of heap kept per request, ${name}`, presented, bound: 'at most', wanted: mostPerRequest }),
  )
  return { rows, goals }
}

async function heapsOf(server: Server, open: readonly Connection[], operation: Operation): Promise<[number, number]> {
  const heaps: number[] = []
  for (let turn = 0; turn < 3; turn++) {
    await load(server, { connections: open, operations: requests, operation })
    heaps.push((await server.ask('gc')).heapBytes)
  }
  return heaps.slice(1) as [number, number] // the first turn was for what is made once, compiled code above all
}

async function refreshChain(connection: Connection): Promise<Operation> {
  const client = await doorward.client(connection)
  const person = { email: `chain-${Math.random()}@example.test`, password: 'a quiet harbour in winter' }
  let { refresh_token } = JSON.parse(mustBe(201, await connection.ask(client.signUp(person))).body) as { refresh_token: string } // a pair
  return async () => {
    const answer = await connection.ask(requestText('/auth/refresh', { json: { refresh_token } }))
    refresh_token = (JSON.parse(mustBe(200, answer).body) as { refresh_token: string }).refresh_token // a pair
  }
}

let spoiledOnes = 0
function spoiled(): string {
  const header = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')
  return requestText('/protected', {
    headers: { authorization: `Bearer ${header}.${Buffer.from(String(spoiledOnes++)).toString('base64url')}.AA` },
  })
}

// ---- floods ---------------------------------------------------------------------------------------------------------

/** How many keys each may hold; the last two have no bound to reach. */
const floods = {
  counters: 100_000,
  'rate-limit': 100_000,
  'remembered-tokens': 10_000,
  'unknown-kids': 20_000,
  idempotency: 10_000,
}

async function measureFloods(): Promise<Part> {
  const rows: Cells[] = []
  const goals: Goal[] = []
  for (const [what, bound] of Object.entries(floods)) {
    // As far into a generation both times: the older half is dropped whole, so how many are held goes up and down.
    const [some, more] = [1.1 * bound, 2.1 * bound].map(Math.round) as [number, number] // as many
    const [empty, full, after] = await flood(what, [some, more])
    const presented = after / full
    rows.push([`${what}: heap before, after ${some} keys, ${more} beside those`, empty / mebibyte, full / mebibyte, presented])
    goals.push({ text: `Heap after ${more} keys beside ${some}, ${what}`, presented, bound: 'at most', wanted: mostGrowth })
  }
  return { rows, goals }
}

async function flood(what: string, ends: readonly [number, number]): Promise<[number, number, number]> {
  const server = await startServer('flood.mjs', { execArgv })
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(server.origin)))
  const [first] = open as [Connection] // there are some
  const heaps = [(await server.ask('gc')).heapBytes]
  for (const [from, to] of [[0, ends[0]] as const, ends]) {
    if (what === 'idempotency') await sendOnce(server, open, to - from, from)
    else mustBe(200, await first.ask(requestText(`/fill/${what}/${from}/${to}`)))
    heaps.push((await server.ask('gc')).heapBytes)
  }
  for (const connection of open) connection.close()
  await server.stop()
  return heaps as [number, number, number] // before, and after each
}

async function sendOnce(server: Server, open: readonly Connection[], keys: number, from: number): Promise<void> {
  await load(server, {
    connections: open,
    operations: keys,
    operation: async (connection, turn) =>
      mustBe(201, await connection.ask(requestText('/once', { headers: { 'idempotency-key': `key-${from + turn}` }, json: { turn } }))),
  })
}

process.exit(await main())
