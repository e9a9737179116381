/**
 * Whether time tells an address that has an account from one that has none: sign-up by password, by passkey, and with a good and a bad invitation, requests for a reset, an activation
 * link and a login by email, whose mails have codes too, wrong codes of a reset and of an activation, and failed logins with an argon2 and with a bcrypt
 * row, on three databases. Each probe is timed three times: its answer, the next request that was pipelined with it, and one that is sent right after.
 * Prints the chance that one probe, and the median of five, rank a known and an unknown address correctly; fails above 0.55 and 0.60.
 * `npm run bench -- login-timing [--samples 190] [--database postgres] [--only code] [--write]`, at a quiet moment; some fifteen minutes.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import bcrypt from 'bcrypt'
import express from 'express'
import { createAuthRouter, createAuthTables, createKnexStore, newPasswordTask, secondFactorTask } from '../../src'
import { virtualAuthenticator } from '../../src/testing'
import { databases } from '../support/databases'
import { chanceOf, chanceOfFive, errorOf, errorOfFive } from './lib/chance.mjs'
import { requestText } from './lib/connection.mjs'
import { openProber, type ProbeTimes } from './lib/pipelined.mjs'
import { report } from './lib/report.mjs'

const { values: given } = parseArgs({
  options: {
    samples: { type: 'string' },
    database: { type: 'string' },
    only: { type: 'string' },
    write: { type: 'boolean' },
    serve: { type: 'string' },
  },
})
const samples = Number(given.samples ?? 190)
/** A cell above its bound is measured again, at most so many times in all; all samples count. */
const mostRounds = 3
const [mostOfOne, mostOfFive] = [0.55, 0.6]
const password = 'a quiet harbour in winter'
const people = 20
const publicUrl = 'https://app.example.test'

type Kind = 'known' | 'unknown'
const kinds = ['known', 'unknown'] as const

interface Operation {
  path: string
  status: number
  /** Waits for a grid of half a second: many at once, at even distances, so that no two hashes meet. */
  isHeld: boolean
  /** What the probe sends; it may ask the server at `origin` for something first. */
  body(kind: Kind, origin: string): object | Promise<object>
}

const anyOf = (name: string) => `${name}-${Math.floor(Math.random() * people)}@example.test`
const emailOf = (name: string) => (kind: Kind) => ({ email: anyOf(kind === 'known' ? name : 'nobody') })
const wrong = (name: string) => (kind: Kind) => ({ ...emailOf(name)(kind), password: 'a loud harbour in summer' })

let requests = 0
/** A wrong code for a request that was just made. Each for another person than the last, because a newer request ends the older one's code. */
function wrongCode(name: string, asking: string, more: object): Operation['body'] {
  return async (kind, origin) => {
    requests += 1
    const { request_token } = await ask(origin, asking, {
      email: `${kind === 'known' ? name : 'nobody'}-${requests % people}@example.test`,
    })
    return { request_token, code: String(randomInt(100_000_000)).padStart(8, '0'), ...more }
  }
}

async function withNewPasskey(kind: Kind, origin: string): Promise<object> {
  const email = kind === 'known' ? anyOf('argon2') : `${randomUUID()}@example.test`
  const { challenge_token, ...options } = await ask(origin, '/auth/signup/passkey/options', { email })
  return { email, credential: virtualAuthenticator({ origin: publicUrl }).create(options as never), challenge_token } // as the route says
}

async function ask(origin: string, path: string, body: object): Promise<Record<string, unknown>> {
  const response = await fetch(origin + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path} answered ${response.status}`)
  return (await response.json()) as Record<string, unknown> // every answer of ours
}

const freeOrTaken = (kind: Kind) => ({ email: kind === 'known' ? anyOf('argon2') : `${randomUUID()}@example.test`, password })
/** The token of an open invitation of the server that is measured. */
let invitation = ''

const operations: Readonly<Record<string, Operation>> = {
  'sign-up': { path: '/auth/signup', status: 201, isHeld: true, body: freeOrTaken },
  'sign-up, invited': { path: '/auth/signup', status: 201, isHeld: true, body: (kind) => ({ ...freeOrTaken(kind), invitation }) },
  'sign-up, bad invitation': {
    path: '/auth/signup',
    status: 403,
    isHeld: true,
    body: (kind) => ({ ...freeOrTaken(kind), invitation: 'x'.repeat(43) }),
  },
  'sign-up with a passkey': { path: '/auth/signup/passkey', status: 201, isHeld: true, body: withNewPasskey },
  'failed login, argon2': { path: '/auth/login', status: 401, isHeld: true, body: wrong('argon2') },
  'failed login, bcrypt': { path: '/auth/login', status: 401, isHeld: true, body: wrong('bcrypt') },
  'reset request': { path: '/auth/password-reset/request', status: 202, isHeld: false, body: emailOf('argon2') },
  'activation request': { path: '/auth/activation/request', status: 202, isHeld: false, body: emailOf('pending') },
  'email login request': { path: '/auth/email-login/request', status: 202, isHeld: false, body: emailOf('argon2') },
  'wrong code, reset': {
    path: '/auth/password-reset/confirm',
    status: 401,
    isHeld: true,
    body: wrongCode('argon2', '/auth/password-reset/request', { new_password: password }),
  },
  'wrong code, activation': {
    path: '/auth/activate',
    status: 401,
    isHeld: true,
    body: wrongCode('pending', '/auth/activation/request', {}),
  },
}
/** It looks an address up, which nobody has. */
const nextRequest = requestText('/auth/password-reset/request', { json: { email: 'nobody-at-all@example.test' } })

/** A server process of its own, with the defaults of production but for the rate limits. */
async function serve(name: string): Promise<void> {
  const database = (await databases()).find((one) => one.name === name)
  if (!database) throw new Error(`${name} does not answer`)
  const { knex, close } = await database.open()
  await createAuthTables(knex)
  const off = false as const
  const auth = createAuthRouter({
    settings: {
      jwtSecret: longSecret,
      publicUrl,
      backendLinks: true,
      emailLogin: 'both',
      emailLoginUrlTemplate: `${publicUrl}/in/{token}`,
      mailedCodes: 'both',
      passkeysEnabled: true,
      webauthnRpName: 'Example',
      signupWith: ['password', 'passkey'],
      invitationsEnabled: true,
      mfaEnabled: true,
      mfaIssuer: 'Example',
      mfaSecretKey: randomBytes(32).toString('base64'),
      unknownDevice: 'code',
    },
    loginTasks: [newPasswordTask(), secondFactorTask({ when: () => true })],
    store: createKnexStore({ knex }),
    environment: 'production',
    mailer: { send: async () => undefined },
    throttle: { login: off, routes: off, signup: off, links: off, mail: off, codes: off },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
  await auth.ready()
  const [bcryptHash, now] = [await bcrypt.hash(password, 10), new Date()]
  for (let number = 0; number < people; number++) {
    for (const group of ['argon2', 'bcrypt', 'pending']) {
      const [{ id }] = await auth.service.signUp({ email: `${group}-${number}@example.test`, password })
      if (group === 'pending') continue
      await knex('auth_users').where({ id }).update({ is_active: true, activated_at: now, email_verified_at: now })
      // Such a login would owe every task. A wrong password must not show it.
      if (group === 'argon2') await knex('auth_users').where({ id }).update({ password_expired_at: now })
      if (group === 'bcrypt') await knex('auth_users').where({ id }).update({ hashed_password: bcryptHash })
    }
  }
  const server = createServer(express().use('/auth', auth)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { token } = await auth.service.invitations.create({ uses: 10_000 })
  process.send?.({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token }) // a TCP server's address is never a string
  await once(process, 'disconnect') // also where the bench was stopped
  server.closeAllConnections()
  server.close()
  await auth.drain()
  await close()
}

const longSecret = randomUUID() + randomUUID()

type Times = Record<Kind, ProbeTimes[]>

/** Known and unknown in an order by chance, so that whatever else the machine does falls on both alike. */
async function measure(origin: string, operation: Operation, count: number): Promise<Times> {
  const times: Times = { known: [], unknown: [] }
  const order = [...Array(count).fill('known'), ...Array(count).fill('unknown')].sort(() => Math.random() - 0.5) as Kind[]
  const lanes = operation.isHeld ? 16 : 2
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      const prober = await openProber(origin)
      await sleep(operation.isHeld ? lane * 35 : lane * 11)
      for (let kind = order.pop(); kind !== undefined; kind = order.pop()) {
        const request = requestText(operation.path, { json: await operation.body(kind, origin) })
        times[kind].push(await prober.probe(request, operation.status, nextRequest))
        if (!operation.isHeld) await sleep(10 + Math.random() * 20)
      }
      prober.close()
    }),
  )
  return times
}

const parts = ['answer', 'pipelined', 'next'] as const

interface Chances {
  one: number
  five: number
}

function chancesOf(times: Times, part: keyof ProbeTimes): Chances {
  const [known, unknown] = kinds.map((kind) => times[kind].map((probe) => probe[part])) as [number[], number[]] // both kinds
  return { one: chanceOf(known, unknown), five: chanceOfFive(known, unknown) }
}

function isAbove({ one, five }: Chances): boolean {
  return one > mostOfOne || five > mostOfFive
}

interface Cell {
  name: string
  times: Times
}

async function measureDatabase(name: string): Promise<Cell[]> {
  const child: ChildProcess = fork(import.meta.filename, ['--serve', name], { execArgv: ['--import', 'tsx'] })
  const [{ origin, token }] = (await once(child, 'message')) as [{ origin: string; token: string }]
  invitation = token
  const cells: Cell[] = []
  for (const [title, operation] of Object.entries(operations)) {
    if (given.only !== undefined && !title.includes(given.only)) continue
    await measure(origin, operation, 15) // what is compiled and made at first use
    const times = await measure(origin, operation, samples)
    for (let round = 1; round < mostRounds && parts.some((part) => isAbove(chancesOf(times, part))); round++) {
      const more = await measure(origin, operation, samples)
      for (const kind of kinds) times[kind].push(...more[kind])
    }
    cells.push({ name: `${title}, ${name}`, times })
    const presented = parts.map((part) => `${part} ${chancesOf(times, part).one.toFixed(3)}`).join(', ')
    console.log(`${cells.at(-1)?.name}: ${presented}; ${times.known.length} of each; load ${loadavg()[0]?.toFixed(1)}`)
  }
  child.disconnect()
  await once(child, 'exit')
  return cells
}

async function main(): Promise<number> {
  const names = (await databases()).map(({ name }) => name).filter((name) => given.database === undefined || name === given.database)
  const loads = [loadavg()[0] ?? 0]
  const cells: Cell[] = []
  for (const name of names) {
    cells.push(...(await measureDatabase(name)))
    loads.push(loadavg()[0] ?? 0)
  }
  const rows = cells.map(({ name, times }) => {
    const { known, unknown } = times
    const answers = kinds.map((kind) => times[kind].map(({ answer }) => answer)) as [number[], number[]]
    const chances = parts.map((part) => chancesOf(times, part))
    return {
      presented: [
        name,
        String(known.length),
        ...chances.map(({ one, five }) => `${one.toFixed(2)} / ${five.toFixed(2)}`),
        `${errorOf(known.length, unknown.length).toFixed(3)} / ${errorOfFive(...answers).toFixed(3)}`,
      ],
      one: Math.max(...chances.map(({ one }) => one)),
      five: Math.max(...chances.map(({ five }) => five)),
    }
  })
  console.log(`load of the machine meanwhile: ${loads.map((load) => load.toFixed(1)).join(', ')}`)
  return report({
    name: 'login-timing',
    command: `npm run bench -- login-timing --samples ${samples}`,
    columns: ['Known or unknown, one probe / five', 'probes', 'answer', 'pipelined', 'next', 'error'],
    rows: rows.map(({ presented }) => presented),
    goals: [
      { text: 'the best chance of one probe', presented: Math.max(...rows.map(({ one }) => one)), bound: 'at most', wanted: mostOfOne },
      { text: 'the best chance of five', presented: Math.max(...rows.map(({ five }) => five)), bound: 'at most', wanted: mostOfFive },
    ],
    packages: ['express', 'argon2', 'bcrypt', 'knex', 'better-sqlite3', 'pg', 'mysql2'],
    options: { rounds: 1, quick: false, write: given.write ?? false, only: given.only ?? null },
  })
}

if (given.serve === undefined) process.exit(await main())
await serve(given.serve)
