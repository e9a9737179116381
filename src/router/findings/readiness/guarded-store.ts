import type { Readiness } from '../../../context'
import type { AuthStore } from '../../../store/auth-store'

type Verb = (...given: never[]) => unknown

/**
 * Returns a store that waits for the check of its tables before each call. While there is an `error`, the store rejects the call. If the
 * tables are correct, a call only reads a flag.
 */
export function guardedStore(store: AuthStore, readiness: Readiness): AuthStore {
  return guarded(store, (verb) => (readiness.isOpen ? verb() : readiness.pass().then(verb)))
}

/**
 * Returns a store for a host's transaction. If the check of the tables found an `error`, the store rejects every call. If the check has not
 * ended, calls do not wait for it (`Readiness.refuseIfBroken`).
 */
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
    // The result has the type of the store's own transaction.
    transaction: <T>(...given: Parameters<AuthStore['transaction']>) => gate(() => store.transaction(...given)) as Promise<T>,
    ...(afterCommit && { afterCommit: (effect) => store.afterCommit?.(effect) }),
  }
}

/**
 * Returns a table whose methods call `gate` before the original method. The methods are made once, so that a call finds a method as fast as
 * in the original table.
 */
function guardedTable<Table extends object>(table: Table, gate: Gate): Table {
  const entries = namesOf(table).map((name): [string, unknown] => {
    const value: unknown = Reflect.get(table, name)
    if (typeof value !== 'function') return [name, value]
    return [name, (...given: unknown[]) => gate(() => Reflect.apply(value as Verb, table, given))]
  })
  return Object.fromEntries(entries) as Table // the table has the same names
}

/** Returns the names of all members. An adapter's table may be an instance of a class, so the function also reads the prototypes. */
function namesOf(table: object): string[] {
  const names = new Set<string>()
  for (let level: object | null = table; level && level !== Object.prototype; level = Object.getPrototypeOf(level))
    for (const name of Object.getOwnPropertyNames(level)) names.add(name)
  return [...names].filter((name) => name !== 'constructor')
}
