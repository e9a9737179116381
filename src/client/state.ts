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
  set(user: User | null): void
  add(listener: Listener): () => void
  clear(): void
}

export function stateBox(): StateBox {
  let listeners: Listener[] = []
  let now: AuthState = Object.freeze({ status: 'loading', user: null })
  return {
    get current() {
      return now
    },
    set(user) {
      const status = user ? 'signed-in' : 'signed-out'
      if (status === now.status && JSON.stringify(user) === JSON.stringify(now.user)) return
      now = Object.freeze({ status, user })
      for (const listener of listeners) if (listeners.includes(listener)) tell(listener, now) // one can stop another
    },
    add(listener) {
      const own: Listener = (state) => listener(state) // the same function may listen twice
      listeners = [...listeners, own]
      tell(own, now)
      return () => {
        listeners = listeners.filter((other) => other !== own)
      }
    },
    clear() {
      listeners = []
    },
  }
}

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
