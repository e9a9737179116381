import type { AuthStore, Expired } from '../auth-store'
import { bindCounterRows } from './counter-rows'
import type { Tables } from './default-tables'
import { checkedTablesOf } from './knex-store'
import { databaseName } from './queryable'

/** The name of the lease, and of the row that says when the last purge was. */
export const purgeLease = 'purge'

export const mostWaiting = 10_000

/** How long an ended counter stays, because the clocks of two processes can differ. */
const counterGraceMs = 60_000
const activationGraceMs = 7 * 86_400_000

/** Null: the store is an adapter of the host, or there is no table `auth_counters`. */
export async function endedCountersOf(store: AuthStore): Promise<((expired: Expired) => Promise<number>) | null> {
  const checked = checkedTablesOf(store)
  if (!checked || !(await checked.dialect.mayUse(checked.knex, 'auth_counters'))) return null
  const rows = bindCounterRows(checked.knex)
  return ({ before, most, run }) => rows.removeEnded(before.getTime() - counterGraceMs, most, run)
}

/** Ended rows of each table, counted up to one more than `mostWaiting`. */
export async function countWaiting(store: AuthStore, now: Date): Promise<Record<string, number>> {
  const checked = checkedTablesOf(store)
  const waiting: Record<string, number> = {}
  if (!checked) return waiting
  const { knex, dialect, tables, hostTables } = checked
  for (const name of ['emailLogins', 'sessions', 'userTokens'] as const) {
    const table = tables[name] as Tables['sessions'] // the three tables map `expiresAt` alike
    if (hostTables[name] === false || !(await dialect.mayUse(knex, databaseName(knex, table.name)))) continue
    const before = name === 'userTokens' ? new Date(now.getTime() - activationGraceMs) : now
    const found = await knex(table.name)
      .where(table.column('expiresAt'), '<=', table.value('expiresAt', before))
      .limit(mostWaiting + 1)
      .select(knex.raw('1'))
    waiting[name] = found.length
  }
  return waiting
}
