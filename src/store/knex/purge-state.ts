import type { AuthStore, Expired } from '../auth-store'
import { bindCounterRows } from './counter-rows'
import type { Tables } from './default-tables'
import { checkedTablesOf } from './knex-store'

export interface PurgeState {
  /** Returns false if another process has the lease at `now`. Both are milliseconds since 1970. */
  take(now: number, until: number): Promise<boolean>
  /** Returns false if another process took the lease meanwhile. */
  extend(from: number, to: number): Promise<boolean>
  recordEnd(at: Date): Promise<void>
  lastEnd(): Promise<Date | null>
  deleteCounters(expired: Expired): Promise<number>
  countWaiting(now: Date): Promise<Record<string, number>>
}

export const mostCounted = 10_000

const [leaseKey, endKey] = ['doorward:purge', 'doorward:purged']

/** The row of the last purge ends so much later, because ended counters are deleted. */
const centuryMs = 36_525 * 86_400_000
/** How long an ended counter stays, because the clocks of two processes can differ. */
const counterGraceMs = 60_000
const activationGraceMs = 7 * 86_400_000

/** Null: the store is an adapter of the host, or there is no table `auth_counters`. */
export async function purgeStateOf(store: AuthStore): Promise<PurgeState | null> {
  const checked = checkedTablesOf(store)
  if (!checked || !(await checked.dialect.mayUse(checked.knex, 'auth_counters'))) return null
  const { knex, tables, hostTables } = checked
  const rows = bindCounterRows(knex)
  return {
    take: async (now, until) => (await rows.countUp(leaseKey, until, now)).count === 1,
    extend: (from, to) => rows.moveEnd(leaseKey, from, to),
    async recordEnd(at) {
      const end = at.getTime() + centuryMs
      await rows.countUp(endKey, end, end) // begins a new window, because the old one ended before
    },
    async lastEnd() {
      const end = await rows.endOf(endKey)
      return end === null ? null : new Date(end - centuryMs)
    },
    deleteCounters: ({ before, most, run }) => rows.removeEnded(before.getTime() - counterGraceMs, most, run),
    async countWaiting(now) {
      const waiting: Record<string, number> = {}
      for (const name of ['emailLogins', 'sessions', 'userTokens'] as const) {
        if (hostTables[name] === false) continue
        const table = tables[name] as Tables['sessions'] // the three tables map `expiresAt` alike
        const before = name === 'userTokens' ? new Date(now.getTime() - activationGraceMs) : now
        const found = await knex(table.name)
          .where(table.column('expiresAt'), '<=', table.value('expiresAt', before))
          .limit(mostCounted)
          .select(knex.raw('1'))
        waiting[name] = found.length
      }
      return waiting
    },
  }
}
