import { AuthClientError } from './error.js'
import { authFetch } from './fetch.js'
import { caller, leaveFor } from './methods.js'
import type { Operations } from './operations.js'
import { createSession } from './session.js'
import type { AuthState, Listener } from './state.js'
import { type Body, operationsOf, table } from './table.js'
import type { AuthClientOptions } from './types.js'

export type * from './operations.js'
export type * from './types.js'
export type { AuthState }
export { AuthClientError }

export interface AuthClient extends Omit<Operations, 'providers'> {
  readonly providers: Operations['providers'] & {
    /** Leaves the page for the provider. The provider sends the person back, at last to `returnTo`. */
    logIn(key: string, options?: { readonly returnTo?: string }): void
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
  for (const origin of options.apiOrigins ?? []) checkOrigin(origin)
  const session = createSession(options)
  const fetchAs = authFetch(session)
  const call = caller(session, fetchAs)
  const client: Record<string | symbol, unknown> = {
    [Symbol.for('doorward.client.v1')]: call, // for doorward/client/admin
    subscribe(listener: Listener) {
      session.start()
      return session.state.add(listener)
    },
    fetch: (input: RequestInfo | URL, init?: RequestInit) => fetchAs(input, init),
    dispose: session.dispose,
  }
  for (const operation of operationsOf(table)) {
    const { group, name } = operation
    const method = (...args: unknown[]) => call(operation, args)
    Object.assign(client, group ? { [group]: { ...(client[group] as object), [name]: method } } : { [name]: method })
  }
  const passkeys = client['passkeys'] as Record<string, unknown>
  const { logIn } = passkeys as { logIn: (body: Body) => Promise<unknown> }
  passkeys['logIn'] = (body?: Body) => logIn({ ...body, passkey: true })
  passkeys['register'] = async (body?: Body) => (await import('./passkeys.js')).register(call, body)
  const providers = client['providers'] as Record<string, unknown>
  providers['logIn'] = (key: string, target?: { returnTo?: string }) => leaveFor(session, key, target)
  return Object.defineProperty(client, 'state', { enumerable: true, get: () => session.state.now }) as unknown as AuthClient
}

function checkOrigin(text: string): void {
  let url: URL | undefined
  try {
    url = new URL(text)
  } catch {
    // reported below
  }
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname))
  if (url?.origin !== text || !isSafe || text.includes('*'))
    throw new TypeError(
      `createAuthClient: apiOrigins takes origins such as https://api.example.com, and http only of the loopback, not ${text}`,
    )
}
