/**
 * What a guard costs: CPU time of the server process per request above the same Express app without one, over HTTP on the
 * loopback. Each contestant is a process of its own; rounds are interleaved, differences are taken within a round, and what
 * is printed are medians; `least above` compares the best rounds, which says more on a busy machine. `repeated`: each of
 * 64 tokens comes again and again; `first sight`: none comes twice before the guard has forgotten it. Fails when ours is
 * above its goals. `npm run bench -- guard [rounds]`, at a quiet moment.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, type Socket } from 'node:net'
import express, { type Request, type RequestHandler } from 'express'
import { jwtVerify } from 'jose'
import jwt from 'jsonwebtoken'
import { createGuards } from '../../src'
import { deriveKey } from '../../src/keys'

type Algorithm = 'HS256' | 'ES256' | 'RS256'
const algorithms: readonly Algorithm[] = ['HS256', 'ES256', 'RS256']
const makers = ['doorward', 'jsonwebtoken', 'jose'] as const

interface Contestant {
  guard: 'none' | (typeof makers)[number]
  algorithm: Algorithm
  tokens: 'repeated' | 'first sight'
}

const contestants: readonly Contestant[] = [
  ...algorithms.map((algorithm): Contestant => ({ guard: 'none', algorithm, tokens: 'repeated' })),
  ...algorithms.map((algorithm): Contestant => ({ guard: 'doorward', algorithm, tokens: 'repeated' })),
  ...makers.flatMap((guard) => algorithms.map((algorithm): Contestant => ({ guard, algorithm, tokens: 'first sight' }))),
]

const mostAboveExpress = 5
/** What two runs of one contestant differ by. */
const noise = 3
const perRound = 1_000
const connections = 16

// ---- the server: `guard.mts serve`, told who it is ------------------------------------------------------------------

async function serve(): Promise<void> {
  const [contestant] = (await once(process, 'message')) as [Contestant]
  const { guard, tokens } = prepare(contestant)
  const app = express().get('/', guard, (_req, res) => void res.json({ ok: true }))
  const server = createServer(app).listen(0, '127.0.0.1')
  server.keepAliveTimeout = 600_000
  await once(server, 'listening')
  process.on('message', () => process.send?.(process.cpuUsage()))
  process.send?.({ port: (server.address() as AddressInfo).port, tokens }) // a TCP server's address is never a string
}

function prepare({ guard, algorithm, tokens }: Contestant): { guard: RequestHandler; tokens: string[] } {
  const secret = randomBytes(48).toString('base64')
  const pair =
    algorithm === 'HS256'
      ? { privateKey: deriveKey(secret, 'access'), publicKey: deriveKey(secret, 'access') }
      : algorithm === 'ES256'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('rsa', { modulusLength: 2048 })
  const header = { alg: algorithm, typ: 'JWT', ...(algorithm !== 'HS256' && { kid: 'bench' }) }
  // Twice what ours remembers: sent in turn, each has been forgotten when it comes again.
  const count = tokens === 'repeated' ? 64 : 20_000
  return {
    guard: guardOf(guard, algorithm, pair.publicKey, () =>
      algorithm === 'HS256' ? { jwtSecret: secret } : { jwtKeys: [{ kid: 'bench', alg: algorithm, privateKey: pemOf(pair.privateKey) }] },
    ),
    tokens: Array.from({ length: count }, () => jwt.sign(claims(), pair.privateKey, { algorithm, header })),
  }
}

function claims() {
  const iat = Math.floor(Date.now() / 1000)
  return { amr: ['pwd'], email: 'ana@example.test', exp: iat + 3600, iat, sub: randomUUID(), typ: 'access' }
}

function pemOf(key: KeyObject): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }))
}

function guardOf(
  guard: Contestant['guard'],
  algorithm: Algorithm,
  key: KeyObject,
  settings: () => Parameters<typeof createGuards>[0]['settings'],
): RequestHandler {
  if (guard === 'doorward') return createGuards({ settings: settings() }).requireAuth()
  if (guard === 'jsonwebtoken') return withJsonwebtoken(key, algorithm)
  if (guard === 'jose') return withJose(key, algorithm)
  return (_req, _res, next) => next()
}

/** As most people would write it, with the key made once. */
function withJsonwebtoken(key: KeyObject, algorithm: Algorithm): RequestHandler {
  return (req: Request & { auth?: unknown }, res, next) => {
    const header = req.headers.authorization
    if (!header?.startsWith('Bearer ')) return void res.status(401).json({ code: 'UNAUTHORIZED' })
    try {
      req.auth = jwt.verify(header.slice(7), key, { algorithms: [algorithm] })
    } catch {
      return void res.status(401).json({ code: 'INVALID_TOKEN' })
    }
    next()
  }
}

function withJose(key: KeyObject, algorithm: Algorithm): RequestHandler {
  return async (req: Request & { auth?: unknown }, res, next) => {
    const header = req.headers.authorization
    if (!header?.startsWith('Bearer ')) return void res.status(401).json({ code: 'UNAUTHORIZED' })
    try {
      req.auth = (await jwtVerify(header.slice(7), key, { algorithms: [algorithm] })).payload
    } catch {
      return void res.status(401).json({ code: 'INVALID_TOKEN' })
    }
    next()
  }
}

// ---- the parent: load and table -------------------------------------------------------------------------------------

interface Server {
  contestant: Contestant
  child: ChildProcess
  sockets: Socket[]
  requests: string[]
  /** Which request is sent next. */
  next: number
  cpuPerRequest: number[]
}

async function main(rounds: number): Promise<number> {
  const servers: Server[] = []
  for (const contestant of contestants) servers.push(await start(contestant))
  for (let round = -1; round < rounds; round++) {
    for (const server of shuffled(servers)) {
      const cost = await measure(server)
      if (round >= 0) server.cpuPerRequest.push(cost)
    }
  }
  for (const { child, sockets } of servers) {
    for (const socket of sockets) socket.destroy()
    child.kill()
  }
  return report(servers)
}

async function start(contestant: Contestant): Promise<Server> {
  const child = fork(import.meta.filename, ['serve'], { execArgv: ['--import', 'tsx'], env: { ...process.env, NODE_ENV: 'production' } })
  child.send(contestant)
  const [{ port, tokens }] = (await once(child, 'message')) as [{ port: number; tokens: string[] }]
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  const server = { contestant, child, sockets, requests: tokens.map(requestWith), next: 0, cpuPerRequest: [] }
  await checkThatItGuards(server, tokens)
  return server
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.setEncoding('latin1')
  await once(socket, 'connect')
  return socket
}

function requestWith(token: string | null): string {
  const authorization = token === null ? '' : `authorization: Bearer ${token}\r\n`
  return `GET / HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\nuser-agent: bench\r\n${authorization}\r\n`
}

/** 200 with a token, 401 without one and with a spoiled one; else it is not measured. */
async function checkThatItGuards({ contestant, sockets: [socket] }: Server, [token = '']: string[]): Promise<void> {
  if (!socket) throw new Error('no connection')
  const spoiled = token.replace(/\.(.)/, (_, first: string) => `.${first === 'a' ? 'b' : 'a'}`)
  const seen = []
  for (const given of [token, token, null, spoiled]) seen.push(await ask(socket, requestWith(given)))
  const wanted = contestant.guard === 'none' ? [200, 200, 200, 200] : [200, 200, 401, 401]
  if (seen.join() !== wanted.join()) throw new Error(`${contestant.guard} ${contestant.algorithm} answered ${seen.join()}`)
}

async function ask(socket: Socket, request: string): Promise<number> {
  const answered = once(socket, 'data') // a small answer is one packet
  socket.write(request, 'latin1')
  const [answer] = (await answered) as [string]
  return Number(answer.slice(9, 12))
}

/** Microseconds of CPU per request; each connection sends its next request when the last was answered. */
async function measure(server: Server): Promise<number> {
  const before = await cpuOf(server.child)
  let left = perRound
  await Promise.all(
    server.sockets.map(async (socket) => {
      while (left-- > 0) {
        const status = await ask(socket, server.requests[server.next++ % server.requests.length] ?? '')
        if (status !== 200) throw new Error(`${server.contestant.guard} answered ${status}`)
      }
    }),
  )
  return ((await cpuOf(server.child)) - before) / perRound
}

async function cpuOf(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [{ user, system }] = (await once(child, 'message')) as [NodeJS.CpuUsage]
  return user + system
}

function report(servers: readonly Server[]): number {
  const bare = (algorithm: Algorithm) => costOf(servers, { guard: 'none', algorithm, tokens: 'repeated' })
  const above = (wanted: Contestant) =>
    round(median(costOf(servers, wanted).map((cost, index) => cost - (bare(wanted.algorithm)[index] ?? Number.NaN))))
  console.log(
    `µs of CPU per request, medians of ${servers[0]?.cpuPerRequest.length} rounds of ${perRound}; above express: the same request, no guard`,
  )
  console.table(
    servers.map(({ contestant, cpuPerRequest }) => ({
      ...contestant,
      'per request': round(median(cpuPerRequest)),
      'above express': above(contestant),
      'least above': round(Math.min(...cpuPerRequest) - Math.min(...bare(contestant.algorithm))),
    })),
  )
  const missed = algorithms.flatMap((algorithm) => {
    const [seen, first] = (['repeated', 'first sight'] as const).map((tokens) => above({ guard: 'doorward', algorithm, tokens }))
    const byHand = above({ guard: 'jsonwebtoken', algorithm, tokens: 'first sight' })
    return [
      ...(Number(seen) <= mostAboveExpress ? [] : [`${algorithm} repeated: ${seen} is above ${mostAboveExpress}`]),
      ...(Number(first) <= byHand + noise ? [] : [`${algorithm} first sight: ${first} is above ${byHand} by hand`]),
    ]
  })
  console.log(missed.length === 0 ? 'every goal is met' : `missed: ${missed.join('; ')}`)
  return missed.length === 0 ? 0 : 1
}

function costOf(servers: readonly Server[], { guard, algorithm, tokens }: Contestant): readonly number[] {
  const found = servers.find(
    ({ contestant }) => contestant.guard === guard && contestant.algorithm === algorithm && contestant.tokens === tokens,
  )
  return found?.cpuPerRequest ?? []
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item)
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor((values.length - 1) / 2)] ?? Number.NaN
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

if (process.argv[2] === 'serve') await serve()
else process.exit(await main(Number(process.argv[2] ?? 60)))
