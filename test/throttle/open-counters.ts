/** Every shared store, as this process or another one opens it. */
import { Redis } from 'ioredis'
import knex, { type Knex } from 'knex'
import { createClient } from 'redis'
import { type CounterStore, knexCounters, redisCounters } from '../../src'
import { withLocalFallback } from '../../src/rate-limits/local-fallback'
import { withoutFsync } from '../support/databases'

export type SharedStore =
  | { readonly kind: 'ioredis'; readonly port: number; readonly prefix?: string }
  | { readonly kind: 'node-redis'; readonly port: number; readonly prefix?: string }
  | { readonly kind: 'knex'; readonly config: Knex.Config }

export interface OpenCounters {
  readonly counters: CounterStore
  close(): Promise<void>
}

/** Both Redis clients with nothing but an address, as a host begins. `now`: for stores that take the application's clock. */
export async function openCounters(store: SharedStore, now?: () => number): Promise<OpenCounters> {
  switch (store.kind) {
    case 'ioredis': {
      const client = new Redis(store.port)
      client.on('error', () => undefined) // outages are part of the tests
      return { counters: redisCounters(client, options(store)), close: async () => client.disconnect() }
    }
    case 'node-redis': {
      const client = createClient({ url: `redis://127.0.0.1:${store.port}` })
      client.on('error', () => undefined) // as above
      await client.connect()
      return { counters: redisCounters(client, options(store)), close: async () => client.destroy() }
    }
    case 'knex': {
      const isFile = store.config.client === 'better-sqlite3'
      const db = knex({ ...store.config, pool: isFile ? withoutFsync({ min: 1, max: 1 }) : { min: 0, max: 5 } })
      return { counters: knexCounters(db, now && { now }), close: () => db.destroy() }
    }
  }
}

function options({ prefix }: { prefix?: string }): { prefix: string } | undefined {
  return prefix === undefined ? undefined : { prefix }
}

/** Where the shared store is what is tested: a machine that is busy for half a second must not put the local one in its place. */
export function patient(counters: CounterStore): CounterStore {
  return withLocalFallback(counters, { deadlineMs: 10_000 })
}
