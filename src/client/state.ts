import type { User } from './operations.js'

export interface AuthState {
  /** `loading` until the router has answered. */
  readonly status: 'loading' | 'signed-in' | 'signed-out'
  /** Null unless signed in. */
  readonly user: User | null
}

export type Listener = (state: AuthState) => void

export interface StateBox {
  readonly current: AuthState
  /** Null: nobody is signed in. Tells the listeners only of a change. */
  change(user: User | null): void
  listen(listener: Listener): () => void
  clear(): void
}

export function stateBox(): StateBox {
  const listeners = new Set<Listener>()
  let now = frozen('loading', null)
  return {
    get current() {
      return now
    },
    change(user) {
      const next = frozen(user ? 'signed-in' : 'signed-out', user)
      if (JSON.stringify(next) === JSON.stringify(now)) return
      now = next
      for (const listener of [...listeners]) if (listeners.has(listener)) tell(listener, now) // one can stop another
    },
    listen(listener) {
      const own: Listener = (state) => listener(state) // the same function may listen twice
      listeners.add(own)
      tell(own, now)
      return () => listeners.delete(own)
    },
    clear: () => listeners.clear(),
  }
}

const frozen = (status: AuthState['status'], user: User | null): AuthState => Object.freeze({ status, user })

/** Undefined or null: nobody, who is not different. */
export const areDifferent = (one: User | null | undefined, other: User | null | undefined) => one && other && one.id !== other.id

function tell(listener: Listener, state: AuthState): void {
  try {
    listener(state)
  } catch (error) {
    report(error)
  }
}

/** A fault of the host must not stop the client. */
export function report(error: unknown): void {
  ;(globalThis.reportError ?? console.error)(error)
}
