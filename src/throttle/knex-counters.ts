import { ConfigurationError } from '../errors'
import { bindCounterRows, type CounterRows, type HostKnex } from '../store/knex/counter-rows'
import type { CounterStore } from './counter-store'
import { storedKey } from './stored-key'

export interface KnexCountersOptions {
  /** Returns milliseconds since 1970; default `Date.now`. The windows use this clock, never the database's. */
  now?: () => number
}

/** The number of rows deleted at once, and the number of new windows between deletions. This is faster than new rows can arrive. */
const removedAtOnce = 1_000
const windowsBetween = 100

/** A row is only deleted this long after its end, because the clocks of two processes differ. */
const graceMs = 60_000

/**
 * Stores counters in the table `auth_counters`, which `createAuthTables` and the migrations create. Every process with this database shares
 * them. It uses its own connections of the pool, never a transaction.
 *
 * Each method is one statement. It rejects with `ServiceUnavailableError` when the database is down or a conflict remains. Rows of ended
 * windows are deleted when new windows start; there is no timer.
 *
 * @throws ConfigurationError for a transaction, and for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export function knexCounters(knex: HostKnex, { now = Date.now }: KnexCountersOptions = {}): CounterStore {
  if (typeof knex !== 'function') throw new ConfigurationError('knexCounters() needs the instance knex({ client, ... }) returns.')
  // An attempt must stay counted when the transaction is rolled back, and must not wait for its end.
  if (knex.isTransaction) throw new ConfigurationError('knexCounters() needs the knex instance itself, not a transaction.')
  const rows = bindCounterRows(knex)
  const removeEndedNowAndThen = nowAndThen(rows)

  return {
    async increment(key, windowSeconds) {
      const at = now()
      const { count, secondsLeft } = await rows.countUp(storedKey(key), at + Math.ceil(windowSeconds * 1000), at)
      if (count === 1) removeEndedNowAndThen(at)
      return { count, resetSeconds: Math.max(1, secondsLeft) }
    },
    decrement: (key) => rows.countDown(storedKey(key)),
    reset: (key) => rows.remove(storedKey(key)),
  }
}

function nowAndThen(rows: CounterRows): (at: number) => void {
  let opened = 0
  return (at) => {
    // Nothing waits for it. Rows that cannot be deleted now are deleted later.
    if (opened++ % windowsBetween === 0) rows.removeEnded(at - graceMs, removedAtOnce).catch(() => undefined)
  }
}
