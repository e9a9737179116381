/**
 * The attacks of docs/reliability.md, each on a server process of its own with production's defaults and 192 MiB for its heap, while honest
 * people come once a second: one by a provider, the owner of an account on a known device, and an app with a token for an API. Fails where
 * one of them was refused, where memory or the audit log grew past its bound, or where an answer was 500.
 * `npm run bench -- attacks [--minutes 10] [--only text] [--together 3] [--write]`
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type FakeProvider, startFakeProvider } from '../../src/testing'
import { cookieHeader, mustBe, openConnection, requestText, takeCookies } from './lib/connection.mjs'
import { type Ask, type Flood, flood, from } from './lib/flood.mjs'
import { beginLogin, callback, locationOf, meetPeople, owner, type Tally } from './lib/honest-people.mjs'
import { type Goal, report } from './lib/report.mjs'
import { slowLine } from './lib/slow-line.mjs'
import { type Server, startServer } from './lib/start-server.mjs'

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, only: { type: 'string' }, together: { type: 'string' }, write: { type: 'boolean' } },
})
const { minutes: given = '10', only = null, together = '1', write = false } = values
const minutes = Number(given)

const mebibyte = 2 ** 20
const mostHeapMebibytes = 96

interface Attack extends Pick<Flood, 'attack' | 'perSecond' | 'connections'> {
  /** What the provider's token and introspection endpoints take. */
  providerMilliseconds?: number
  /** Once everybody was let in, and before the attack. */
  prepare?(provider: FakeProvider): void
  /** What docs/events.md says that refusals leave; absent where it gives no number. */
  mostRows?: number
}

const attacks: Readonly<Record<string, Attack>> = {
  'used `state` values': { attack: useState, perSecond: 1_300, connections: 16 },
  "guesses at the owner's password": {
    attack: guess,
    perSecond: 200,
    connections: 16,
    mostRows: 1 + windows(900) * (50 + 10), // of the address 50 failures, and a refusal for each client
  },
  'junk at a slow provider': { attack: sendJunk, perSecond: 200, connections: 200, providerMilliseconds: 2_000 },
  'made-up `kid`s, key set away': {
    attack: makeUpKid,
    perSecond: 200,
    connections: 16,
    prepare: (provider) => provider.on('jwks', (_request, response) => void response.destroy()),
  },
  'refused requests': {
    attack: beRefused,
    perSecond: 300,
    connections: 16,
    // Within the limits two routes tell of 60 failures a minute, and logins of 100; past them each of five has a refusal, and one at the end.
    mostRows: windows(60) * (2 * 60 + 3) + windows(900) * (100 + 2) + 5,
  },
  'counters of ever new clients': {
    attack: fillCounters,
    perSecond: 850,
    connections: 16,
    mostRows: 10_000 + windows(60), // so many counters are remembered, and the others written once a minute
  },
}

/** How many windows of so many seconds begin in the run. */
function windows(seconds: number): number {
  return Math.floor((minutes * 60) / seconds) + 1
}

// ---- the attacks ----------------------------------------------------------------------------------------------------

/** Ends logins that it began, from so many addresses that no limit refuses it. A code would only cost the attacker time. */
async function useState(ask: Ask, turn: number): Promise<void> {
  for (const request of await begunCallback(ask, from(`10.${threeBytes(Math.floor(turn / 50))}`))) await ask(request)
}

/** Begins a login. Returns the callback that belongs to it; none where the login was refused. */
async function begunCallback(ask: Ask, client: Record<string, string>, rest: Record<string, string> = {}): Promise<string[]> {
  const begun = await ask(beginLogin(client))
  if (begun.status !== 302) return []
  const state = new URL(locationOf(begun)).searchParams.get('state') ?? ''
  return [callback({ state, ...rest }, { ...client, ...cookieHeader(takeCookies(begun)) })]
}

async function guess(ask: Ask, turn: number): Promise<void> {
  const json = { email: owner.email, password: randomUUID() }
  await ask(requestText('/auth/login', { json, headers: from(`192.0.2.${turn % 10}`) }))
}

/** Callbacks of logins that one client has begun, held back until they are as many as its rate limit allows, and then sent at once. */
const heldBack: string[] = []
const toSend: string[] = []

/** Made-up tokens and callbacks from forty clients, and from one more sixty made-up codes at once, each minute. */
async function sendJunk(ask: Ask, turn: number): Promise<void> {
  const headers = from(`192.0.2.${turn % 40}`)
  const next = toSend.pop()
  if (next) await ask(next)
  else if (turn % 4 === 0) {
    heldBack.push(...(await begunCallback(ask, from('192.0.2.40'), { code: randomUUID() })))
    if (heldBack.length >= 60) toSend.push(...heldBack.splice(0))
  } else if (turn % 4 === 1) await ask(callback({ state: randomUUID(), code: randomUUID() }, headers))
  else await ask(requestText('/auth/oauth/corp/token', { json: { access_token: randomUUID() }, headers }))
}

/** At the API, and every tenth as an id_token at the router. */
async function makeUpKid(ask: Ask, turn: number): Promise<void> {
  const [header, claims] = [
    { alg: 'RS256', typ: 'JWT', kid: randomUUID() },
    { amr: ['pwd'], email: 'app@example.test', exp: Math.floor(Date.now() / 1000) + 900, iat: 0, sub: 'app', typ: 'access' },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const token = `${header}.${claims}.${randomBytes(256).toString('base64url')}`
  if (turn % 10 > 0) await ask(requestText('/reports', { headers: { authorization: `Bearer ${token}` } }))
  else await ask(requestText('/auth/oauth/corp/token', { json: { id_token: token }, headers: from('192.0.2.1') }))
}

async function beRefused(ask: Ask, turn: number): Promise<void> {
  const headers = from('192.0.2.1')
  const email = `${randomUUID()}@example.test`
  const requests = [
    () => beginLogin(headers),
    () => callback({ state: randomUUID(), code: randomUUID() }, headers),
    () => requestText('/auth/oauth/corp/token', { json: { access_token: randomUUID() }, headers }),
    () => requestText('/auth/login', { json: { email, password: randomUUID() }, headers }),
    () => requestText('/auth/password-reset/request', { json: { email }, headers }),
  ]
  await ask(requests[turn % requests.length]?.() ?? '')
}

/** Uses up five counters by each twenty requests, of one client and of four addresses, and is refused once; each client has a /48 of its own. */
async function fillCounters(ask: Ask, turn: number): Promise<void> {
  const client = Math.floor(turn / 21)
  const [high, low] = [0x2a00 + (client >> 16), client & 0xffff].map((group) => group.toString(16))
  const email = `${client}-${Math.floor((turn % 21) / 5)}@example.test`
  await ask(requestText('/auth/password-reset/request', { json: { email }, headers: from(`2001:${high}:${low}::1`) }))
}

/** Three bytes of an IPv4 address. */
function threeBytes(number: number): string {
  return [number >> 16, (number >> 8) & 255, number & 255].join('.')
}

// ---- playing one ----------------------------------------------------------------------------------------------------

interface Played {
  name: string
  requests: number
  /** Answers to the attacker with 500. */
  broken: number
  tally: Tally
  heap: { peak: number; after: number }
  rss: number
  rows: number
}

async function play(name: string, { attack, perSecond, connections, providerMilliseconds = 0, prepare }: Attack): Promise<Played> {
  const provider = await startFakeProvider()
  const line = await slowLine(provider.issuer, providerMilliseconds)
  const endpoints = { tokenUrl: `${line.origin}/token`, introspectionUrl: `${line.origin}/introspect` }
  const server = await startServer('attacked.mjs', {
    environment: { BENCH_PROVIDER: JSON.stringify(provider.oidcOptions(endpoints)) },
    execArgv: ['--expose-gc', '--max-old-space-size=192'],
  })
  try {
    const letCome = await meetPeople(server.origin, provider)
    prepare?.(provider)
    const rowsBefore = await refusalRows(server)
    const until = performance.now() + minutes * 60_000
    const [statuses, tally, peak] = await Promise.all([
      flood(server.origin, { attack, perSecond, connections, until }),
      letCome(until),
      watchMemory(server, until),
    ])
    const after = (await server.ask('gc')).heapBytes
    const requests = [...statuses.values()].reduce((sum, count) => sum + count, 0)
    const heap = { peak: peak.heap, after }
    const played = {
      name,
      requests,
      broken: statuses.get(500) ?? 0,
      tally,
      heap,
      rss: peak.rss,
      rows: (await refusalRows(server)) - rowsBefore,
    }
    console.log(`${cellsOf(played).join(' | ')}; answers to the attacker: ${[...statuses].map((pair) => pair.join(': ')).join(', ')}`)
    for (const failure of tally.failures) console.log(`  ${failure}`)
    return played
  } finally {
    await server.stop()
    line.close()
    await provider.close()
  }
}

/** The most that were seen, looking once a second. */
async function watchMemory(server: Server, until: number): Promise<{ heap: number; rss: number }> {
  const peak = { heap: 0, rss: 0 }
  while (performance.now() < until) {
    const { heapBytes, rssBytes } = await server.ask('usage')
    peak.heap = Math.max(peak.heap, heapBytes)
    peak.rss = Math.max(peak.rss, rssBytes)
    await sleep(1_000)
  }
  return peak
}

async function refusalRows(server: Server): Promise<number> {
  const connection = await openConnection(server.origin)
  const { body } = mustBe(200, await connection.ask(requestText('/refusals')))
  connection.close()
  return (JSON.parse(body) as { rows: number }).rows
}

// ---- all of them ----------------------------------------------------------------------------------------------------

async function main(): Promise<number> {
  const chosen = Object.entries(attacks).filter(([name]) => only === null || name.includes(only))
  const played: Played[] = []
  for (const waiting = [...chosen]; waiting.length > 0; ) {
    const some = waiting.splice(0, Number(together)).map((entry) => play(...entry))
    played.push(...(await Promise.all(some)))
  }
  return report({
    name: 'attacks',
    columns: ['Attack', 'minutes', 'requests', 'honest tries', 'let in', 'slowest ms', 'heap MiB', 'after gc', 'RSS', 'audit rows', 'held'],
    rows: played.map(cellsOf),
    goals: played.flatMap(goalsOf).filter((goal) => goal.presented > goal.wanted),
    packages: ['express', 'knex', 'better-sqlite3'],
    options: { rounds: 1, quick: false, write, only },
    command: `npm run bench -- attacks --minutes ${minutes}${together === '1' ? '' : ` --together ${together}`}`,
  })
}

function cellsOf(played: Played): string[] {
  const { name, requests, tally, heap, rss, rows } = played
  const megabytes = [heap.peak, heap.after, rss].map((bytes) => (bytes / mebibyte).toFixed(0))
  const held = goalsOf(played).every(({ presented, wanted }) => presented <= wanted)
  const figures = [minutes, requests, tally.tries, tally.successes, Math.ceil(tally.slowestMs), ...megabytes, rows].map(String)
  return [name, ...figures, held ? 'yes' : '**no**']
}

function goalsOf({ name, broken, tally, heap, rows }: Played): Goal[] {
  const goal = (what: string, presented: number, wanted: number): Goal => ({
    text: `${name}: ${what}`,
    presented,
    bound: 'at most',
    wanted,
  })
  const { mostRows } = attacks[name] ?? {}
  return [
    goal('honest tries that failed', tally.tries - tally.successes, 0),
    goal('answers with 500', broken, 0),
    goal('MiB of heap after a collection', heap.after / mebibyte, mostHeapMebibytes),
    ...(mostRows === undefined ? [] : [goal('audit rows of refusals', rows, mostRows)]),
  ]
}

process.exit(await main())
