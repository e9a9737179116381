/** The other processes of first-login.test.ts: one host each, on the database and the provider they are told; its counters are shared too. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import knex, { type Knex } from 'knex'
import { createAuthRouter, createKnexStore, knexCounters, OidcClient, type SettingsInput } from '../../src'
import { withLocalFallback } from '../../src/rate-limits/local-fallback'
import { withoutFsync } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'

export interface ServerOrder {
  config: Knex.Config
  client: ConstructorParameters<typeof OidcClient>[0]
  settings: SettingsInput
}

process.once('message', (order: ServerOrder) => {
  const isFile = order.config.client === 'better-sqlite3'
  const db = knex({ ...order.config, ...(isFile && { pool: withoutFsync({ min: 1, max: 1 }) }) })
  // What is tested is the shared store: a machine that is busy for half a second must not put the local one in its place.
  const counters = withLocalFallback(knexCounters(db), { deadlineMs: 10_000 })
  const auth = createAuthRouter({
    settings: order.settings,
    store: createKnexStore({ knex: db }),
    providers: { corp: new OidcClient(order.client) },
    environment: 'test',
    passwordHasher: fastHasher(),
    throttle: { routes: false, counters },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
  const server = createServer(express().use('/auth', auth)).listen(0, '127.0.0.1', () => {
    process.send?.((server.address() as AddressInfo).port) // a TCP server's address is never a string
  })
  process.once('disconnect', () => void db.destroy().finally(() => process.exit(0)))
})
