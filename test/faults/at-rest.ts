import type { Knex } from 'knex'

/** What was begun before an answer, or goes on after it, has ended. */
export async function atRest(knex: Knex): Promise<void> {
  const { pool } = knex.client as { pool: { numUsed(): number; numPendingAcquires(): number } }
  for (let quiet = 0; quiet < 4; ) {
    await new Promise((resolve) => setTimeout(resolve, 2))
    quiet = pool.numUsed() + pool.numPendingAcquires() === 0 ? quiet + 1 : 0
  }
}
