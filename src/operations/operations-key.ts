/** Where a router carries its operations for the command, which may come from another copy of the package. */
export const OPERATIONS = Symbol.for('doorward.operations.v1')
