import type { Operations } from './operations'

/** Where a router carries its operations for the command, which may come from another copy of the package. */
export const OPERATIONS = Symbol.for('doorward.operations.v2')

/** What the router carries there. It loads their code at the first call. */
export type LoadOperations = () => Promise<Operations>
