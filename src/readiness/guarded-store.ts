import type { AuthStore } from '../store/auth-store'
import type { Readiness } from './readiness'

type Verb = (...given: never[]) => unknown

/**
 * Returns a store whose calls wait for the check of its tables, and are refused while there is an `error`. When the tables are right, a
 * call only reads a flag.
 */
export function guardedStore(store: AuthStore, readiness: Readiness): AuthStore {
  return guarded(store, (verb) => (readiness.isOpen ? verb() : readiness.pass().then(verb)))
}

/** Does the same for a store inside a host's transaction, but without waiting. */
export function guardedTransaction(store: AuthStore, readiness: Readiness): AuthStore {
  return guarded(store, (verb) =>
    readiness.isOpen
      ? verb()
      : Promise.resolve()
          .then(() => readiness.refuseIfBroken())
          .then(verb),
  )
}

type Gate = (verb: () => unknown) => unknown

function guarded(store: AuthStore, gate: Gate): AuthStore {
  const { users, userTokens, identities, recoveryCodes, passkeys, sessions, emailLogins, afterCommit } = store
  return {
    users: guardedTable(users, gate),
    userTokens: guardedTable(userTokens, gate),
    ...(identities && { identities: guardedTable(identities, gate) }),
    ...(recoveryCodes && { recoveryCodes: guardedTable(recoveryCodes, gate) }),
    ...(passkeys && { passkeys: guardedTable(passkeys, gate) }),
    ...(sessions && { sessions: guardedTable(sessions, gate) }),
    ...(emailLogins && { emailLogins: guardedTable(emailLogins, gate) }),
    transaction: <T>(...given: Parameters<AuthStore['transaction']>) => gate(() => store.transaction(...given)) as Promise<T>, // as the store's own
    ...(afterCommit && { afterCommit: (effect) => store.afterCommit?.(effect) }),
  }
}

/** Made once, so that a method is found as fast as in the table itself. */
function guardedTable<Table extends object>(table: Table, gate: Gate): Table {
  const entries = namesOf(table).map((name): [string, unknown] => {
    const value: unknown = Reflect.get(table, name)
    if (typeof value !== 'function') return [name, value]
    return [name, (...given: unknown[]) => gate(() => Reflect.apply(value as Verb, table, given))]
  })
  return Object.fromEntries(entries) as Table // has each name of the table
}

/** Returns the names of all members, because an adapter's table may be an instance of a class. */
function namesOf(table: object): string[] {
  const names = new Set<string>()
  for (let level: object | null = table; level && level !== Object.prototype; level = Object.getPrototypeOf(level))
    for (const name of Object.getOwnPropertyNames(level)) names.add(name)
  return [...names].filter((name) => name !== 'constructor')
}
