/**
 * What `guards.verify` costs beside the guard that checks the same credential: a remembered access token, a token with the row of its
 * session, and a session cookie with its row (SQLite in memory). Both are called in a loop without a server, in rounds of both; the guard
 * gets a request without a response, as in an upgrade listener. Prints medians in µs per call and the median of the ratios.
 * `npm run bench -- verify [rounds]`, at a quiet moment.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Request, RequestHandler, Response } from 'express'
import knex from 'knex'
import { createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { loginAs, openSessionAs } from '../../src/testing'
import { withUser } from '../../src/testing/records'

const rounds = Number(process.argv[2] ?? 200)
const perRound = 100
const jwtSecret = randomBytes(48).toString('base64')

interface Pair {
  name: string
  verify(): Promise<unknown>
  guard(): Promise<unknown>
}

async function main(): Promise<void> {
  const database = knex({
    client: 'better-sqlite3',
    connection: { filename: ':memory:' },
    useNullAsDefault: true,
    pool: { min: 1, max: 1 },
  })
  await createAuthTables(database)
  const store = createKnexStore({ knex: database })
  const { id } = await withUser(store)
  const routerOf = (settings: object) =>
    createAuthRouter({
      settings: { jwtSecret, publicUrl: 'https://app.example.test', ...settings },
      store,
      environment: 'test',
      logger: { info() {}, warn() {}, error() {} },
    })
  const [tokens, withoutSid, cookies] = [
    routerOf({ tokenDelivery: 'bearer' }),
    routerOf({ tokenDelivery: 'bearer', accessTokenSessionClaims: false, realm: 'b' }),
    routerOf({ tokenDelivery: 'session', cookieSecure: false, realm: 'c' }),
  ]
  const bearer = async (auth: typeof tokens) => ({ authorization: `Bearer ${(await loginAs(auth, { id })).accessToken}` })
  const session = {
    host: 'app.example.test',
    origin: 'https://app.example.test',
    cookie: (await openSessionAs(cookies, { id })).cookies.cookie,
  }
  const pairs: Pair[] = [
    pair('token alone, beside requireAuth()', withoutSid, await bearer(withoutSid), withoutSid.guards.requireAuth()),
    pair('token with its session, beside requireLiveSession()', tokens, await bearer(tokens), tokens.guards.requireLiveSession()),
    pair('session cookie, beside requireLiveSession()', cookies, session, cookies.guards.requireLiveSession()),
  ]
  for (const one of pairs) await compare(one)
  await database.destroy()
}

function pair(name: string, { guards }: ReturnType<typeof createAuthRouter>, headers: Record<string, string>, guard: RequestHandler): Pair {
  const rawHeaders = Object.entries(headers).flat()
  const request = () => ({ headers, rawHeaders }) as unknown as IncomingMessage & Request // a new one for each call: guards remember it
  return {
    name,
    verify: () => guards.verify(request()),
    guard: () => new Promise<void>((resolve, reject) => guard(request(), {} as Response, (error) => (error ? reject(error) : resolve()))),
  }
}

async function compare({ name, verify, guard }: Pair): Promise<void> {
  const times: { verify: number; guard: number }[] = []
  for (let round = -20; round < rounds; round += 1) {
    const isFirst = round % 2 === 0
    const first = await timeOf(isFirst ? verify : guard)
    const second = await timeOf(isFirst ? guard : verify)
    if (round >= 0) times.push(isFirst ? { verify: first, guard: second } : { verify: second, guard: first })
  }
  const micros = (kind: 'verify' | 'guard') => (median(times.map((time) => time[kind])) * 1_000).toFixed(1)
  const ratio = median(times.map((time) => time.verify / time.guard))
  console.log(`${name}: verify ${micros('verify')} µs, guard ${micros('guard')} µs, ratio ${ratio.toFixed(2)}`)
}

/** Milliseconds of one call, over a round of them. */
async function timeOf(check: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  for (let call = 0; call < perRound; call += 1) await check()
  return (performance.now() - start) / perRound
}

function median(values: number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
}

await main()
