import { ConfigurationError } from '../core/errors'
import { bindCounterRows, type CounterRows, type HostKnex } from '../store/knex/counter-rows'
import { type CounterStore, storedKey } from './rate-limit'

export interface KnexCountersOptions {
  /** Returns milliseconds since 1970. Default `Date.now`. The windows use this clock and never the database's clock. */
  now?: () => number
}

/**
 * A deletion removes at most `removedAtOnce` rows and runs once per `windowsBetween` new windows. Rows are therefore deleted faster than
 * new rows arrive.
 */
const removedAtOnce = 1_000
const windowsBetween = 100

/**
 * The least time between the end of a window and the deletion of its row. This time is needed because the clocks of two processes can
 * differ.
 */
const graceMs = 60_000

/**
 * Stores counters in the table `auth_counters`, which `createAuthTables` and the migrations create. Every process that uses this database
 * shares the counters. Each statement takes its own connection from the pool. The store never uses a transaction.
 *
 * Each method is one statement. If the database is down, or a conflict remains after three attempts, the method rejects with
 * `ServiceUnavailableError`. When new windows start, the store deletes rows of ended windows. The store has no timer.
 *
 * @throws ConfigurationError for a transaction, and for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export function knexCounters(knex: HostKnex, { now = Date.now }: KnexCountersOptions = {}): CounterStore {
  if (typeof knex !== 'function') throw new ConfigurationError('knexCounters() needs the instance knex({ client, ... }) returns.')
  // Rejects a transaction, because an attempt must stay counted even if the transaction is rolled back. Counting must also not wait for the
  // end of the transaction.
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
    // No caller waits for the deletion. If the deletion fails, a later deletion removes the rows.
    if (opened++ % windowsBetween === 0) rows.removeEnded(at - graceMs, removedAtOnce).catch(() => undefined)
  }
}
