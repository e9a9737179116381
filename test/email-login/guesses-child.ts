/** The other processes of guesses.test.ts: a whole app each, which clients of many addresses ask for codes and guess them. */
import crypto from 'node:crypto'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import express from 'express'
import type supertest from 'supertest'
import { createAuthRouter, createKnexStore } from '../../src'
import { mailbox } from '../../src/testing/mailbox'
import { browserOf } from '../support/browser'
import { serveTasks } from '../support/two-processes'
import { openCounters, patient, type SharedStore } from '../throttle/open-counters'

export interface Task {
  /** Null: each process counts for itself. */
  counters: SharedStore | null
  email: string
  /** The first of the clients' addresses. */
  from: number
  clients: number
  guesses: number
}

export interface Outcome {
  /** Codes that were compared with a stored one, whatever was answered. */
  compared: number
  statuses: Record<number, number>
}

let compared = 0
const compare = crypto.timingSafeEqual
/** The one place where a code meets its hash: two texts of 64 hexadecimal digits. */
function counting(...[one, other]: Parameters<typeof compare>): boolean {
  if (/^[0-9a-f]{64}$/.test(Buffer.from(one.buffer, one.byteOffset, one.byteLength).toString())) compared += 1
  return compare(one, other)
}

async function guess(
  { counters: shared, email, from, clients, guesses }: Task,
  app: (counters: SharedStore | null) => Promise<express.Express>,
) {
  const server = (await app(shared)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on a port
  compared = 0
  const statuses: Record<number, number> = {}
  const count = ({ status }: supertest.Response) => {
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  await Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      const browser = browserOf(`http://127.0.0.1:${port}`)
      const ask = (path: string, body: object) =>
        browser
          .post(`/auth${path}`)
          .set('X-Forwarded-For', `198.51.100.${from + index}`)
          .send(body)
      await ask('/email-login/request', { email })
      for (let tried = 0; tried < guesses; tried += 1) count(await ask('/email-login/confirm', { code: String(tried).padStart(8, '0') }))
    }),
  )
  server.close()
  return { compared, statuses }
}

if (process.send) {
  crypto.timingSafeEqual = counting
  syncBuiltinESMExports()
  serveTasks<Task, Outcome>(
    (knex) => {
      const make = async (shared: SharedStore | null) => {
        const counters = shared && patient((await openCounters(shared)).counters)
        const auth = createAuthRouter({
          settings: {
            jwtSecret: 'the same secret in each process, long enough',
            publicUrl: 'https://app.example.test',
            emailLogin: 'code',
            tokenDelivery: 'session',
            cookieSecure: false,
            backendLinks: true,
          },
          store: createKnexStore({ knex }),
          environment: 'test',
          mailer: mailbox(),
          ...(counters && { throttle: { counters } }),
          logger: { info() {}, warn() {}, error: console.error },
        })
        const app = express().set('trust proxy', true)
        return app.use('/auth', auth)
      }
      return (task) => guess(task, make)
    },
    { connections: 4 },
  )
}
