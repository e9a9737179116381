import { AssertionError } from 'node:assert'
import type { Knex } from 'knex'
import type { AuthStore, CompleteStore } from '../../src/store/auth-store'
import { storeContract } from '../../src/testing'

/** A store that breaks its contract in one way. */
export interface Mutant {
  /** Ends the sentence "storeContract finds …". */
  readonly name: string
  /** Returns the members that differ. Also applied to the store inside each transaction. */
  change(store: CompleteStore, knex: Knex): Partial<CompleteStore>
  /** The name of a case that must fail. */
  readonly caughtBy: RegExp
}

/** Returns the names of the cases that fail by an assertion. A mutant that breaks otherwise proves nothing. */
export async function casesThatCatch({ change, caughtBy }: Mutant, store: CompleteStore, knex: Knex): Promise<string[]> {
  const mutated = withChange(store, (inside) => change(inside, knex))
  const failed: string[] = []
  for (const { name, run } of storeContract({ makeStore: async () => mutated })) {
    if (!caughtBy.test(name)) continue
    await run().catch((error: unknown) => {
      if (!(error instanceof AssertionError)) throw error
      failed.push(name)
    })
  }
  return failed
}

function withChange(store: CompleteStore, change: (store: CompleteStore) => Partial<CompleteStore>): CompleteStore {
  const changed: CompleteStore = { ...store, ...change(store) }
  const transaction: AuthStore['transaction'] = (work, options) =>
    changed.transaction((inside) => work(withChange(inside as CompleteStore, change)), options) // as complete as the one outside
  return { ...changed, transaction }
}
