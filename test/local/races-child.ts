/** The other processes of races.test.ts: a whole host each, on the same database, asked over HTTP. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import type { Knex } from 'knex'
import { type AuthRouter, type AuthRouterOptions, createAuthRouter, createKnexStore, knexCounters, type PasswordHasher } from '../../src'
import { serveTasks } from '../support/two-processes'

export type Task =
  /** All of them at once; the usual host unless one is named. */
  | { verb: 'post'; requests: HttpRequest[]; host?: HostName }
  | { verb: 'changePassword'; userId: string; currentPassword: string; newPassword: string }
  | { verb: 'deactivate'; userId: string }

/** `autoActivate`: accounts are born active; `counting`: with the budgets of logins, counted in the database. */
export type HostName = 'usual' | 'autoActivate' | 'counting'

export interface HttpRequest {
  path: string
  body: object
  /** The client's address; without one, this process's. */
  from?: string
}

export interface HttpAnswer {
  status: number
  body: Record<string, unknown>
}

export interface Answer {
  answers: HttpAnswer[]
  /** Names of what observers in this process heard meanwhile. */
  events: string[]
  /** How many passwords were looked at, against whatever hash. */
  verified: number
  /** The database was too slow to count: this process did, as it should, and the other knows nothing of it. */
  countedHere: boolean
}

/** What both processes and the test share, so that one reads the other's tokens. */
export const raceSettings = { jwtSecret: 'the same secret in each process, long enough', oauthRedirectBaseUrl: 'https://app.example.test' }
export const noBudgets = { routes: false, login: false, signup: false, links: false, mail: false } as const

/** As after a raise of the cost: hashes that begin with `old$` are to be replaced, and a hash takes a moment. */
export function agingHasher(): PasswordHasher {
  return {
    async hash(password) {
      await delay(Math.random() * 3)
      return `new$${digestOf(password)}`
    },
    verify: async (hash, password) => hash.slice('new$'.length) === digestOf(password),
    needsRehash: (hash) => hash.startsWith('old$'),
  }
}

export function digestOf(password: string): string {
  return createHash('sha256').update(password).digest('hex')
}

interface Host {
  auth: AuthRouter
  origin: string
  close(): void
}

let verified = 0
let countedHere = false

function spyingHasher(): PasswordHasher {
  const hasher = agingHasher()
  const verify: PasswordHasher['verify'] = (hash, password) => {
    verified += 1
    return hasher.verify(hash, password)
  }
  return { ...hasher, verify }
}

function tell(fields: object, message: string): void {
  if (message.includes('this process counts by itself')) countedHere = true
  console.error(message, fields)
}

async function startHost(knex: Knex, settings: object, throttle: AuthRouterOptions['throttle'] = noBudgets): Promise<Host> {
  const auth = createAuthRouter({
    settings: { ...raceSettings, ...settings },
    store: createKnexStore({ knex }),
    environment: 'test',
    passwordHasher: spyingHasher(),
    throttle,
    logger: { info() {}, warn() {}, error: tell },
  })
  const server = createServer(express().set('trust proxy', 1).use('/auth', auth)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP server's address is never a string
  return { auth, origin: `http://127.0.0.1:${port}`, close: () => void server.close().closeAllConnections() }
}

const startCounting = (knex: Knex) =>
  startHost(knex, {}, { routes: false, counters: knexCounters(knex), login: { email: { attempts: 5, windowSeconds: 900 } } })

async function post({ origin }: Host, { path, body, from }: HttpRequest): Promise<HttpAnswer> {
  const headers = { 'Content-Type': 'application/json', ...(from && { 'X-Forwarded-For': from }) }
  const response = await fetch(`${origin}/auth${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> } // an object in every answer of ours
}

async function perform(hosts: Record<HostName, Host>, task: Task): Promise<HttpAnswer[]> {
  const { service } = hosts.usual.auth
  switch (task.verb) {
    case 'post':
      return Promise.all(task.requests.map((request) => post(hosts[task.host ?? 'usual'], request)))
    case 'changePassword':
      await service.changePassword(task)
      return []
    case 'deactivate':
      await service.deactivate(task.userId)
      return []
  }
}

serveTasks<Task, Answer>(
  async (db) => {
    const hosts = {
      usual: await startHost(db, {}),
      autoActivate: await startHost(db, { autoActivate: true }),
      counting: await startCounting(db),
    }
    let events: string[] = []
    hosts.usual.auth.events.on('activation', () => events.push('activation'))
    return async (task) => {
      events = []
      verified = 0
      countedHere = false
      const answers = await perform(hosts, task)
      const answer = { answers, events, verified, countedHere }
      if (countedHere) {
        hosts.counting.close()
        hosts.counting = await startCounting(db) // which has no store to be wary of
      }
      return answer
    }
  },
  { connections: 3 },
)
