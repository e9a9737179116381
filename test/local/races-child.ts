/** The other processes of races.test.ts: a whole host each, on the same database, asked over HTTP. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import type { Knex } from 'knex'
import { type AuthRouter, createAuthRouter, createKnexStore, type PasswordHasher } from '../../src'
import { serveTasks } from '../support/two-processes'

export type Task =
  /** All of them at once; `host`: the one born with `autoActivate`, or the usual one. */
  | { verb: 'post'; requests: HttpRequest[]; host?: 'usual' | 'autoActivate' }
  | { verb: 'changePassword'; userId: string; currentPassword: string; newPassword: string }
  | { verb: 'deactivate'; userId: string }

export interface HttpRequest {
  path: string
  body: object
}

export interface HttpAnswer {
  status: number
  body: Record<string, unknown>
}

/** `events`: names of what observers in this process heard meanwhile. */
export interface Answer {
  answers: HttpAnswer[]
  events: string[]
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
}

async function startHost(knex: Knex, settings: object): Promise<Host> {
  const auth = createAuthRouter({
    settings: { ...raceSettings, ...settings },
    store: createKnexStore({ knex }),
    environment: 'test',
    passwordHasher: agingHasher(),
    throttle: noBudgets,
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
  const server = createServer(express().use('/auth', auth)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { auth, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } // a TCP server's address is never a string
}

async function post({ origin }: Host, { path, body }: HttpRequest): Promise<HttpAnswer> {
  const headers = { 'Content-Type': 'application/json' }
  const response = await fetch(`${origin}/auth${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> } // an object in every answer of ours
}

async function perform(hosts: Record<'usual' | 'autoActivate', Host>, task: Task): Promise<HttpAnswer[]> {
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
    const hosts = { usual: await startHost(db, {}), autoActivate: await startHost(db, { autoActivate: true }) }
    let events: string[] = []
    hosts.usual.auth.events.on('activation', () => events.push('activation'))
    return async (task) => {
      events = []
      return { answers: await perform(hosts, task), events }
    }
  },
  { connections: 3 },
)
