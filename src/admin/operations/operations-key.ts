import type { Operations } from './operations'

/** The symbol is global, because the command may come from another copy of the package. */
export const OPERATIONS = Symbol.for('doorward.operations.v2')

/** Loads the code of the operations at its first call. */
export type LoadOperations = () => Promise<Operations>
