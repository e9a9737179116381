import { databaseTrouble } from '../store/knex/check/check-store-tables'
import type { LoadedAuth } from './auth-module'
import { type CommandAnswer, CommandRefusal, UsageError } from './terminal'

interface MigrateFlags {
  readonly table?: string | undefined
}

const usage = 'Write `doorward migrate status`, `doorward migrate up` or `doorward migrate sql`.'

/** Runs before the command loads the app. @throws UsageError for an unknown subcommand */
export function requireMigrateVerb([verb = '', ...more]: readonly string[]): void {
  if (!['status', 'up', 'sql'].includes(verb) || more.length > 0) throw new UsageError(usage)
}

/** Records the migrations in `auth_migrations`: knex expects a file in the host's folder for every row of the host's own table. */
export async function migrate(
  [verb]: readonly string[],
  { table = 'auth_migrations' }: MigrateFlags,
  loaded: LoadedAuth,
): Promise<CommandAnswer> {
  const { migrations } = loaded.operations
  if (!migrations) throw new CommandRefusal('NO_TABLES', 'The store is an adapter of your own, whose tables are yours to make.')
  try {
    return await answerOf(verb, table, migrations)
  } catch (error) {
    const trouble = databaseTrouble(error)
    throw trouble === null ? error : new CommandRefusal('SERVICE_UNAVAILABLE', trouble, { cause: error })
  }
}

async function answerOf(
  verb: string | undefined,
  table: string,
  migrations: NonNullable<LoadedAuth['operations']['migrations']>,
): Promise<CommandAnswer> {
  if (verb === 'up') {
    const { done, tookLock } = await migrations.up(table)
    const notes = [
      ...(tookLock ? [`Another run left its lock in ${table}_lock and recorded nothing for a minute. This run took the lock over.`] : []),
      ...(done.length === 0 ? ['Nothing was missing.'] : []),
    ]
    return { json: { done }, text: done.join('\n'), ...(notes.length > 0 && { note: notes.join('\n') }) }
  }
  if (verb === 'sql') {
    const statements = await migrations.sql()
    return { json: { statements }, text: statements.map((sql) => `${sql};`).join('\n') }
  }
  const versions = await migrations.status()
  return { json: { migrations: versions }, text: versions.map(({ name, state }) => `${name}  ${state}`).join('\n') }
}

export async function purge({ operations }: LoadedAuth): Promise<CommandAnswer> {
  const deleted = await operations.purge()
  return {
    json: deleted,
    text: Object.entries(deleted)
      .map(([table, count]) => `${table}  ${count}`)
      .join('\n'),
  }
}
