/**
 * The property of `globalThis` that the command sets while it loads the app for `migrate`. Routers made meanwhile do not check their tables,
 * because the tables may not exist yet. The symbol is global, because the command may come from another copy of the package.
 */
export const UNCHECKED = Symbol.for('doorward.unchecked')
