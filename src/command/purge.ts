import type { Answer } from './answer'
import type { LoadedAuth } from './auth-module'

/** Deletes the rows that can no longer matter. */
export async function purge({ operations }: LoadedAuth): Promise<Answer> {
  const deleted = await operations.purge()
  return {
    json: deleted,
    text: Object.entries(deleted)
      .map(([table, count]) => `${table}  ${count}`)
      .join('\n'),
  }
}
