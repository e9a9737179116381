/** The other processes of state-races.test.ts: a whole host each, with the counters it is told. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import type { Knex } from 'knex'
import { createAuthRouter, createKnexStore, type ProviderClient } from '../../src'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { serveTasks } from '../support/two-processes'
import { openCounters, patient, type SharedStore } from '../throttle/open-counters'

export interface Attempt {
  state: string
  cookie: string
}

/** `counters` null: each process has its own, in memory. */
export type Task =
  | { verb: 'open'; counters: SharedStore | null }
  | { verb: 'begin' }
  | { verb: 'callBack'; attempt: Attempt; copies: number }
  | { verb: 'bring'; idToken: string; copies: number }

/** `outcomes`: the status of each copy. */
export type Answer = { attempt: Attempt | null; outcomes: number[] }

const nobody = { attempt: null, outcomes: [] }

/** The same for every copy of a token, as in a real one. */
const exp = Math.ceil(Date.now() / 1000) + 3_600

/** Answers at once, and takes any code and any id_token: only their single use decides. */
const provider: ProviderClient = {
  providerName: 'corp',
  clientId: 'app',
  authorizeUrl: 'https://corp.example/authorize',
  tokenUrl: 'https://corp.example/token',
  scopes: [],
  exchangeCode: async () => ({
    accessToken: 'a',
    tokenType: 'bearer',
    refreshToken: null,
    idToken: null,
    expiresIn: null,
    scope: null,
    raw: {},
  }),
  verifyIdToken: async (idToken) => ({
    accessToken: '',
    tokenType: 'bearer',
    refreshToken: null,
    idToken,
    expiresIn: null,
    scope: null,
    raw: {},
    proof: { claims: { exp } },
  }),
  fetchUser: async () => ({
    provider: 'corp',
    subject: 'the-racer',
    email: 'racer@example.test',
    emailVerified: true,
    name: null,
    picture: null,
    raw: {},
  }),
}

async function listen(knex: Knex, shared: SharedStore | null): Promise<{ port: number; close(): Promise<void> }> {
  const open = shared && (await openCounters(shared))
  if (open) await open.counters.reset('connected')
  const auth = createAuthRouter({
    settings: {
      jwtSecret: 'the same secret in both processes, long enough',
      oauthEnabled: true,
      oauthRedirectBaseUrl: 'https://app.example.test',
    },
    store: createKnexStore({ knex }),
    providers: { corp: provider },
    environment: 'test',
    passwordHasher: fastHasher(),
    throttle: { routes: false, ...(open && { counters: patient(open.counters) }) },
    logger: logTap(),
  })
  await auth.ready()
  const server = express().use('/auth', auth).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port, // a TCP server's address
    async close() {
      server.closeAllConnections()
      server.close()
      await open?.close()
    },
  }
}

function bring(port: number, idToken: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const options = { host: '127.0.0.1', port, path: '/auth/oauth/corp/token', method: 'POST', headers }
    const outgoing = request(options, (response) => response.resume().on('end', () => resolve(response.statusCode ?? 0)))
    outgoing.on('error', reject).end(JSON.stringify({ id_token: idToken }))
  })
}

function get(port: number, path: string, cookie = ''): Promise<{ status: number; location: string; cookie: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path: `/auth/oauth/corp/${path}`, headers: { cookie } }, (response) => {
      response.resume().on('end', () => {
        const cookie = response.headers['set-cookie']?.find((line) => line.startsWith('oauth_state=')) ?? ''
        resolve({ status: response.statusCode ?? 0, location: response.headers.location ?? '', cookie: cookie.split(';')[0] ?? '' })
      })
    })
    outgoing.on('error', reject).end()
  })
}

serveTasks<Task, Answer>(
  (knex) => {
    let host: Awaited<ReturnType<typeof listen>> | undefined
    return async (task) => {
      if (task.verb === 'open') {
        await host?.close()
        host = await listen(knex, task.counters)
        return nobody
      }
      if (!host) throw new Error('no host yet')
      const { port } = host
      if (task.verb === 'begin') {
        const { location, cookie } = await get(port, 'login')
        return { attempt: { state: String(new URL(location).searchParams.get('state')), cookie }, outcomes: [] }
      }
      if (task.verb === 'bring') {
        const { idToken } = task
        return { attempt: null, outcomes: await Promise.all(Array.from({ length: task.copies }, () => bring(port, idToken))) }
      }
      const { state, cookie } = task.attempt
      const copies = Array.from({ length: task.copies }, () => get(port, `callback?code=c&state=${state}`, cookie))
      return { attempt: null, outcomes: (await Promise.all(copies)).map(({ status }) => status) }
    }
  },
  { connections: 3 },
)
