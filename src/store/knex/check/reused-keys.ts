import type { AuthStore } from '../../auth-store'
import { checkedTablesOf } from '../knex-store'
import { databaseName } from '../queryable'

/** True if the database gives the key of a deleted account to a new one. Null: an adapter of the host. */
export async function givesKeysAgain(store: AuthStore): Promise<boolean | null> {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const { knex, dialect, tables } = checked
  if (tables.users.ids !== 'integer' || dialect.name === 'postgresql') return false
  if (dialect.name === 'sqlite') {
    const name = databaseName(knex, tables.users.name).split('.').at(-1)
    const [table] = await dialect.run(knex, {
      sql: "select sql from sqlite_master where type = 'table' and name = ?",
      bindings: [name ?? ''],
    })
    return table !== undefined && !/\bautoincrement\b/i.test(String(table['sql']))
  }
  const [server] = await dialect.run(knex, { sql: 'select version() as version', bindings: [] })
  return isOldInnoDb(String(server?.['version']))
}

/** Until MySQL 8 and MariaDB 10.2.4, InnoDB forgets the highest key when the server restarts. */
export function isOldInnoDb(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number)
  if (!/mariadb/i.test(version)) return major < 8
  return major < 10 || (major === 10 && (minor < 2 || (minor === 2 && patch < 4)))
}
