import type { CommandAnswer } from './answer'
import type { LoadedAuth } from './auth-module'

/** Deletes expired rows that are no longer needed. */
export async function purge({ operations }: LoadedAuth): Promise<CommandAnswer> {
  const deleted = await operations.purge()
  return {
    json: deleted,
    text: Object.entries(deleted)
      .map(([table, count]) => `${table}  ${count}`)
      .join('\n'),
  }
}
