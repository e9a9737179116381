/** Apps with one guarded route, each with the tokens it lets in: by doorward, by hand, by other packages, and by nobody. */
import { generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { deriveKey } from '../../../src/core/keys'
import { type Connection, openConnection, requestText } from './connection.mjs'
import { type Load, type LoadFigures, load } from './load.mjs'
import { type Server, type StartOptions, startServer } from './start-server.mjs'

export type Algorithm = 'HS256' | 'ES256' | 'RS256'
export const algorithms: readonly Algorithm[] = ['HS256', 'ES256', 'RS256']

export type Headers = Readonly<Record<string, string>>

export interface Contestant {
  name: string
  start(options?: Pick<StartOptions, 'under' | 'execArgv'>): Promise<Server>
  /** Who may pass, as headers. */
  credentials(connection: Connection): Promise<readonly Headers[]>
}

interface Keys {
  /** As many as were asked for, as doorward's; and some that name the issuer and the audience that one guard insists on. */
  own: readonly Headers[]
  issued: readonly Headers[]
  /** What `servers/guard.mjs` makes its key of. */
  environment: Readonly<Record<string, string>>
}

export interface Made {
  algorithm: Algorithm
  keys: Keys
}

/** `tokens`: how many of them come in turn; all, where none is named. */
export function jwtGuard(title: string, guard: string, { algorithm, keys }: Made, tokens = keys.own.length): Contestant {
  return {
    name: `${title}, ${algorithm}`,
    start: (options) => startServer('guard.mjs', { ...options, environment: { ...keys.environment, BENCH_GUARD: guard } }),
    credentials: async () => (guard === 'express-oauth2-jwt-bearer' ? keys.issued : keys.own.slice(0, tokens)),
  }
}

export function makeKeys(algorithm: Algorithm, tokens: number): Keys {
  const jwtSecret = randomBytes(48).toString('base64')
  const { privateKey } =
    algorithm === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength: 2048 })
  const secret = deriveKey(jwtSecret, 'access')
  const [issuer, audience] = ['https://id.example.test/', 'bench']
  const sign = signer(algorithm === 'HS256' ? secret : privateKey, algorithm)
  const keys = { jwtSecret, secret: secret.export().toString('base64'), privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
  return {
    own: Array.from({ length: tokens }, () => sign()),
    issued: Array.from({ length: 500 }, () => sign({ issuer, audience })),
    environment: { BENCH_ALGORITHM: algorithm, BENCH_KEYS: JSON.stringify({ ...keys, issuer, audience }) },
  }
}

function signer(key: KeyObject, algorithm: Algorithm): (more?: jwt.SignOptions) => Headers {
  return (more = {}) => {
    const iat = Math.floor(Date.now() / 1000)
    const claims = { amr: ['pwd'], email: 'ana@example.test', exp: iat + 86_400, iat, sub: randomUUID(), typ: 'access' }
    const token = jwt.sign(claims, key, { algorithm, ...(algorithm !== 'HS256' && { keyid: 'bench' }), ...more })
    return { authorization: `Bearer ${token}` }
  }
}

export interface Running {
  name: string
  server: Server
  connections: readonly Connection[]
  requests: readonly string[]
  /** How many were sent. */
  sent: number
  stop(): Promise<void>
}

/** With so many connections, once it has shown that it guards. */
export async function run(
  { name, start, credentials }: Contestant,
  connections: number,
  options?: Pick<StartOptions, 'under' | 'execArgv'>,
): Promise<Running> {
  const server = await start(options)
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
  return value.replace(/(Bearer [^.]+\.|=)(...)(.)/g, (_, before, kept, changed) => `${before}${kept}${changed === '-' ? '_' : '-'}`)
}

export function ask(one: Running, work: Pick<Load, 'milliseconds' | 'operations'>): Promise<LoadFigures> {
  const { server, requests, name } = one
  return load(server, {
    connections: one.connections,
    ...work,
    async operation(connection) {
      const { status } = await connection.ask(requests[one.sent++ % requests.length] ?? '')
      if (status !== 200) throw new Error(`${name} answered ${status}`)
    },
  })
}

export function named(all: readonly Contestant[], name: string): Contestant {
  const found = all.find((contestant) => contestant.name === name)
  if (!found) throw new Error(`${name} does not take part`)
  return found
}

/** Its tokens are as long: reading a header is not the guard's. */
export function bareOf(name: string): string {
  return `bare Express, ${algorithms.find((algorithm) => name.endsWith(algorithm)) ?? 'HS256'}`
}
