import type { AuthStore, UnitOptions } from '../../src'

/** What a verb does instead of its work. */
export type Fault = () => unknown

export interface FaultyStore {
  store: AuthStore
  /** Every verb called, for example `users.find`; inside a unit of work too. */
  calls: string[]
  /** From now on this verb fails, or every verb; null: none does. */
  break(verb: string | 'every verb' | null, fault?: Fault): void
}

/** A real store whose verbs can be made to throw, reject or answer nonsense, on the pool and inside units of work alike. */
export function faultyStore(real: AuthStore): FaultyStore {
  const calls: string[] = []
  const broken: { verb: string | null; fault: Fault } = { verb: null, fault: () => undefined }

  function called(verb: string, work: () => unknown): unknown {
    calls.push(verb)
    return broken.verb === verb || broken.verb === 'every verb' ? broken.fault() : work()
  }

  function wrapTable(table: string, verbs: object): object {
    return new Proxy(verbs, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => called(`${table}.${String(name)}`, () => Reflect.apply(value, target, given))
      },
    })
  }

  function wrap(store: AuthStore): AuthStore {
    const tables = Object.entries(store).filter(([, table]) => typeof table === 'object')
    const wrapped = Object.fromEntries(tables.map(([name, table]) => [name, wrapTable(name, table as object)]))
    const transaction = (work: (store: AuthStore) => unknown, options?: UnitOptions) =>
      called('transaction', () => store.transaction(async (inside) => work(wrap(inside)), options))
    return { ...wrapped, transaction } as unknown as AuthStore // the same tables under the same names
  }

  return {
    store: wrap(real),
    calls,
    break(verb, fault = () => undefined) {
      broken.verb = verb
      broken.fault = fault
    },
  }
}
