/**
 * Whether the time of a refused login tells an unknown address, a wrong password and an inactive account apart: over HTTP,
 * argon2 with its default parameters, budgets off. Prints medians; fails when two of them differ by more than 5 %.
 * `npm run bench -- login-timing [samples]`, at a quiet moment.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import knex from 'knex'
import { argon2idHasher, createAuthRouter, createAuthTables, createKnexStore } from '../../src'

const samples = Number(process.argv[2] ?? 200)
const mostDifference = 0.05
const password = 'a quiet harbour in winter'

const bodies = {
  'unknown address': { email: 'nobody@example.test', password },
  'wrong password': { email: 'active@example.test', password: 'a loud harbour in summer' },
  'inactive account': { email: 'inactive@example.test', password },
}
type Kind = keyof typeof bodies
const kinds = Object.keys(bodies) as Kind[] // just above

async function main(): Promise<number> {
  const db = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true, pool: { min: 1, max: 1 } })
  await createAuthTables(db)
  const hasher = argon2idHasher()
  const auth = createAuthRouter({
    settings: { jwtSecret: 'a secret for measuring, long enough', oauthRedirectBaseUrl: 'https://app.example.test', autoActivate: true },
    store: createKnexStore({ knex: db }),
    environment: 'test',
    passwordHasher: hasher,
    throttle: { login: false, routes: false },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
  await auth.service.signUp({ email: 'active@example.test', password })
  const [inactive] = await auth.service.signUp({ email: 'inactive@example.test', password })
  await auth.service.deactivate(inactive.id)
  const server = createServer(express().use('/auth', auth)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string

  const times = await measure(origin)
  server.closeAllConnections()
  server.close()
  await db.destroy()
  return report(times, hasher.engine)
}

/** Interleaved, in a new order each time, so that whatever else the machine does falls on all of them alike. */
async function measure(origin: string): Promise<Record<Kind, number[]>> {
  const times: Record<Kind, number[]> = { 'unknown address': [], 'wrong password': [], 'inactive account': [] }
  const warmUps = 10
  for (let sample = -warmUps; sample < samples; sample++) {
    for (const kind of shuffled(kinds)) {
      const time = await timeOf(origin, bodies[kind])
      if (sample >= 0) times[kind].push(time)
    }
  }
  return times
}

async function timeOf(origin: string, body: object): Promise<number> {
  const begun = performance.now()
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(`${origin}/auth/login`, { method: 'POST', headers, body: JSON.stringify(body) })
  await response.text()
  const time = performance.now() - begun
  if (response.status !== 401) throw new Error(`a login answered ${response.status}`)
  return time
}

function report(times: Record<Kind, number[]>, engine: string): number {
  const usual = median(times['wrong password'])
  console.log(`${samples} logins of each kind, ${engine}; median, 10th and 90th percentile in ms, difference from a wrong password`)
  for (const kind of kinds) {
    const [low, middle, high] = [0.1, 0.5, 0.9].map((share) => quantile(times[kind], share).toFixed(2))
    console.log(`${kind.padEnd(17)} ${middle}  (${low} .. ${high})  ${(100 * (median(times[kind]) / usual - 1)).toFixed(2)} %`)
  }
  const medians = kinds.map((kind) => median(times[kind]))
  const difference = Math.max(...medians) / Math.min(...medians) - 1
  const isEqual = difference <= mostDifference
  console.log(`largest difference ${(100 * difference).toFixed(2)} %: ${isEqual ? 'within' : 'more than'} ${100 * mostDifference} %`)
  return isEqual ? 0 : 1
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item)
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
}

process.exit(await main())
