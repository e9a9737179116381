import type { Operations } from './operations'

/** The property with which a router gives its operations to the command. The command may come from another copy of the package. */
export const OPERATIONS = Symbol.for('doorward.operations.v2')

/** The value of that property. The function loads the code of the operations at the first call. */
export type LoadOperations = () => Promise<Operations>
