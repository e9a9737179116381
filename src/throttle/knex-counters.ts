import { ConfigurationError } from '../errors'
import { bindCounterRows, type CounterRows, type HostKnex } from '../store/knex/counter-rows'
import type { CounterStore } from './counter-store'
import { storedKey } from './stored-key'

export interface KnexCountersOptions {
  /** Milliseconds since 1970; default `Date.now`. Windows are kept by it and never by the database's clock. */
  now?: () => number
}

/** Rows deleted at once, and after how many new windows: faster than they can come. */
const removedAtOnce = 1_000
const windowsBetween = 100

/** A row is left alone for this long after its end: the clocks of two processes differ. */
const graceMs = 60_000

/**
 * Counters in the table `auth_counters`, made by `createAuthTables` and the migrations, shared by every process on that
 * database. Works on connections of its own from the pool, never inside a transaction.
 *
 * Each verb is one statement and rejects with `ServiceUnavailableError` when the database is away or a conflict stays.
 * Rows of ended windows are deleted as new windows open; there is no timer.
 *
 * @throws ConfigurationError for a transaction, and for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export function knexCounters(knex: HostKnex, { now = Date.now }: KnexCountersOptions = {}): CounterStore {
  if (typeof knex !== 'function') throw new ConfigurationError('knexCounters() needs the instance knex({ client, ... }) returns.')
  // What is counted must stay counted when the transaction is rolled back, and must not wait for its end.
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
    // Nobody waits for it, and what could not be deleted now is deleted later.
    if (opened++ % windowsBetween === 0) rows.removeEnded(at - graceMs, removedAtOnce).catch(() => undefined)
  }
}
