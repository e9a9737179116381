import type { Knex } from 'knex'

/** What was begun before an answer, or goes on after it, has ended. */
export async function atRest(knex: Knex): Promise<void> {
  for (let quiet = 0; quiet < 4; ) {
    await new Promise((resolve) => setTimeout(resolve, 2))
    quiet = asking(knex) === 0 ? quiet + 1 : 0
  }
}

/** How many have a connection of the pool, or wait for one. */
export function asking({ client }: Knex): number {
  const { pool } = client as { pool: { numUsed(): number; numPendingAcquires(): number } }
  return pool.numUsed() + pool.numPendingAcquires()
}
