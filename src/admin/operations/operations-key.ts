import type { Operations } from './operations'

/**
 * The property of a router by which the command finds the router's operations. The symbol is global, because the command may come from
 * another copy of the package.
 */
export const OPERATIONS = Symbol.for('doorward.operations.v2')

/** The value of the property `OPERATIONS`: a function that loads the code of the operations at its first call. */
export type LoadOperations = () => Promise<Operations>
