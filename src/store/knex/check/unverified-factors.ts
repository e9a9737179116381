import type { AuthStore } from '../../auth-store'
import { checkedTablesOf } from '../knex-store'
import { lookAt } from './check-store-tables'
import { name, quotedTable } from './mend'
import { countRows, mostProbed } from './probes'
import { columnOf } from './subject'

export interface UnverifiedFactors {
  readonly count: number
  readonly isMost: boolean
  /** Marks the addresses of these accounts as verified, except after a login within 30 days. Null: `last_login_at` is not mapped. */
  readonly sql: string | null
}

/** The accounts of an unverified address without a factor. Null: as `unverifiedFactors`. */
export async function unverifiedWithoutFactor(store: AuthStore): Promise<Pick<UnverifiedFactors, 'count' | 'isMost'> | null> {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const users = await lookAt(checked, 'users')
  const [verified, enabled] = ['emailVerifiedAt', 'totpEnabledAt'].map((field) => columnOf(users, field))
  if (!verified?.facts) return null
  const columns = [verified, ...(enabled?.facts ? [enabled] : [])].map((column) => name(users, column.name))
  const count = await countRows(checked.knex, users, columns, columns.map((column) => `${column} is null`).join(' and '))
  return { count, isMost: count === mostProbed }
}

const thirtyDaysMs = 30 * 86_400_000

/** Null: the store is an adapter of the host, or a column is missing. @throws the database's errors, also after two seconds */
export async function unverifiedFactors(store: AuthStore, now: Date): Promise<UnverifiedFactors | null> {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const users = await lookAt(checked, 'users')
  const named = (field: string) => {
    const column = columnOf(users, field)
    return column?.facts ? name(users, column.name) : null
  }
  const [verified, enabled, lastLogin] = [named('emailVerifiedAt'), named('totpEnabledAt'), named('lastLoginAt')]
  if (verified === null || enabled === null) return null
  const condition = `${verified} is null and ${enabled} is not null`
  const count = await countRows(checked.knex, users, [verified, enabled], condition)
  const literal = (instant: Date) => {
    const value = checked.dialect.instantToColumn(instant)
    return typeof value === 'number' ? String(value) : `'${value}'`
  }
  const isLongAgo = `${lastLogin} < ${literal(new Date(now.getTime() - thirtyDaysMs))}`
  const sql = `update ${quotedTable(users)} set ${verified} = ${literal(now)} where ${condition} and ${isLongAgo}`
  return { count, isMost: count === mostProbed, sql: lastLogin === null ? null : sql }
}
