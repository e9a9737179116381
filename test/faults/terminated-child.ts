/** The host of terminated.test.ts: on SIGTERM it closes its own server and pool, and leaves the rest to us. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import knex, { type Knex } from 'knex'
import { createAuthRouter, createKnexStore, OidcClient } from '../../src'
import { testClock } from '../support/clock'
import { fastHasher } from '../support/fast-hasher'
import { type ClientOptions, faultSettings, faultThrottle } from './faulty-app'

export interface TerminatedOrder {
  config: Knex.Config
  clients: Record<string, ClientOptions>
}

/** Long enough to be under way when the signal comes. */
const hashMs = 300

process.once('message', async ({ config, clients }: TerminatedOrder) => {
  const db = knex({ ...config, pool: { min: 1, max: 1 } })
  const hasher = fastHasher()
  const auth = createAuthRouter({
    settings: faultSettings,
    store: createKnexStore({ knex: db }),
    providers: Object.fromEntries(Object.entries(clients).map(([key, options]) => [key, new OidcClient(options)])),
    mailer: { send: () => new Promise(() => undefined) }, // a mail server that never answers
    passwordHasher: {
      ...hasher,
      async verify(hash, password) {
        process.send?.(password)
        await delay(hashMs)
        return hasher.verify(hash, password)
      },
    },
    throttle: faultThrottle,
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
    now: testClock().now,
  })
  const server = createServer(express().use('/auth', auth)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.once('SIGTERM', () => {
    server.close(() => void db.destroy())
    server.closeIdleConnections()
    process.disconnect()
  })
  process.send?.((server.address() as AddressInfo).port) // a TCP server's address is never a string
})
