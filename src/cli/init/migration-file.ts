import { posix } from 'node:path'
import { type Plan, quotedText } from './auth-file'
import type { Knexfile } from './read-knexfile'
import type { FoundUsersTable } from './users-table'

/**
 * Returns the path and the text of a migration for the app's own folder. The migration creates doorward's tables.
 * @param now the time in the name of the file
 */
export function migrationFile({ users }: Pick<Plan, 'users'>, knexfile: Knexfile, now: Date): { path: string; text: string } {
  const ending = /[cm]?[jt]s$/.exec(knexfile.path)?.[0] ?? 'js'
  const stamp = now.toISOString().replace(/\D/g, '').slice(0, 14)
  const path = posix.join(knexfile.migrations, `${stamp}_doorward.${ending}`)
  const call = `createAuthTables(knex${users ? `, { users: { ${keyOf(users)} } }` : ''})`
  const about = '/** Makes the tables of doorward, or brings them up to date; it may run again. */'
  const stays = '/** A rollback leaves them: they hold accounts. */'
  const alone = 'transaction: false } // MariaDB makes no table in one, PostgreSQL no index beside running logins'
  const isTypeScript = ending.endsWith('ts')
  const lines =
    knexfile.isModule || isTypeScript
      ? [
          "import { createAuthTables } from 'doorward'",
          ...(isTypeScript ? ["import type { Knex } from 'knex'"] : []),
          '',
          about,
          `export async function up(${isTypeScript ? 'knex: Knex' : 'knex'})${isTypeScript ? ': Promise<void>' : ''} {`,
          `  await ${call}`,
          '}',
          '',
          stays,
          `export async function down()${isTypeScript ? ': Promise<void>' : ''} {}`,
          '',
          `export const config = { ${alone}`,
        ]
      : [
          "const { createAuthTables } = require('doorward')",
          '',
          about,
          `exports.up = (knex) => ${call}`,
          '',
          stays,
          'exports.down = async () => {}',
          '',
          `exports.config = { ${alone}`,
        ]
  return { path, text: `${lines.join('\n')}\n` }
}

/** Returns the users table and its key, for the foreign keys of doorward's tables. */
function keyOf({ table, ids, columns: { id } }: FoundUsersTable): string {
  return [
    `table: ${quotedText(table)}`,
    ...(ids === 'uuid' ? [] : [`ids: '${ids}'`]),
    ...(id ? [`columns: { id: ${quotedText(id)} }`] : []),
  ].join(', ')
}
