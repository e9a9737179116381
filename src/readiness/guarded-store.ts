import type { AuthStore } from '../store/auth-store'
import type { Readiness } from './readiness'

type Verb = (...given: never[]) => unknown

/**
 * The store behind the check of its tables: each call waits for the check, and is refused while an `error` stands. Once the tables are
 * right, a call costs one look at a flag.
 */
export function guardedStore(store: AuthStore, readiness: Readiness): AuthStore {
  return guarded(store, (verb) => (readiness.isOpen ? verb() : readiness.pass().then(verb)))
}

/** The same for a store inside a transaction of the host's: nothing waits there. */
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

/** Made once: a look-up of a verb finds a function, as in the table itself. */
function guardedTable<Table extends object>(table: Table, gate: Gate): Table {
  const entries = namesOf(table).map((name): [string, unknown] => {
    const value: unknown = Reflect.get(table, name)
    if (typeof value !== 'function') return [name, value]
    return [name, (...given: unknown[]) => gate(() => Reflect.apply(value as Verb, table, given))]
  })
  return Object.fromEntries(entries) as Table // each name of it
}

/** An adapter's table may be an object of a class. */
function namesOf(table: object): string[] {
  const names = new Set<string>()
  for (let level: object | null = table; level && level !== Object.prototype; level = Object.getPrototypeOf(level))
    for (const name of Object.getOwnPropertyNames(level)) names.add(name)
  return [...names].filter((name) => name !== 'constructor')
}
