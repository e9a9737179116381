import { AuthClientError } from './error.js'
import { authFetch } from './fetch.js'
import { caller, leaveFor } from './methods.js'
import type { ClientOperations } from './operations.js'
import { createSession } from './session.js'
import type { AuthState, Listener } from './state.js'
import { operationsOf, table } from './table.js'
import type { AuthClientOptions } from './types.js'

export type * from './operations.js'
export type * from './types.js'
export type { AuthState }
export { AuthClientError }

export interface AuthClient extends Omit<ClientOperations, 'providers'> {
  readonly providers: ClientOperations['providers'] & {
    /** Leaves the page for the provider. The provider sends the person back, at last to `returnTo`. */
    logIn(key: string, options?: { readonly returnTo?: string; readonly invitation?: string }): void
  }
  /** The same object until the state changes. */
  readonly state: AuthState
  /** Calls the listener at once and after each change. Returns the function that stops it. */
  subscribe(listener: Listener): () => void
  /** `fetch` with the credential of the session, for the router's origin and `apiOrigins`. Refreshes an expired session and repeats. */
  fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>
  /** Ends timers, listeners and the connection to other tabs. */
  dispose(): void
}

/**
 * Makes a client of the router at `baseUrl`. It sends the first request when something is called or subscribed.
 * @throws TypeError for a wrong entry of `apiOrigins`
 */
export function createAuthClient(options: AuthClientOptions): AuthClient {
  options.apiOrigins?.forEach(checkOrigin)
  const session = createSession(options)
  const fetchAs = authFetch(session)
  const call = caller(session, fetchAs)
  const client: Record<string, unknown> = {
    call, // for doorward/client/admin
    get state() {
      return session.box.current
    },
    subscribe(listener: Listener) {
      session.start()
      return session.box.listen(listener)
    },
    fetch: fetchAs,
    dispose: session.dispose,
  }
  for (const [group, lines] of Object.entries(table)) {
    const methods: Record<string, unknown> = group ? {} : client
    if (group) client[group] = methods
    for (const [, name = '', line] of operationsOf(lines)) methods[name] = (...args: unknown[]) => call(line || `${group}.${name}`, args)
  }
  const made = client as unknown as AuthClient
  made.providers.logIn = (key, target) => leaveFor(session, key, target)
  return made
}

/** https, or http of the loopback. */
const originForm = /^(https:\/\/[^*]+$|http:\/\/(localhost|127\.[\d.]+|\[::1])(:|$))/

function checkOrigin(text: string): void {
  if (!originForm.test(text) || new URL(text).origin !== text) throw new TypeError(`apiOrigins: no https origin: ${text}`)
}
