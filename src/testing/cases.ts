import type { CompleteStore } from '../store/auth-store'

/** A case may use the tables that every store has, and the optional table of its section. */
export type Cases = readonly (readonly [name: string, check: (store: CompleteStore) => Promise<void>])[]
